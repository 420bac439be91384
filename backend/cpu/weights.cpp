#include "backend/cpu/weights.hpp"

#include <cstring>

namespace foretoken {
namespace {

/// Hands out pieces of one buffer, or only counts while it has none.
class Arena {
 public:
  explicit Arena(std::byte* base) : base_(base) {}
  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    return piece;
  }
  float* floats(int count) { return reinterpret_cast<float*>(take(static_cast<std::size_t>(count) * 4)); }
  cpu::PackedMatrix matrix(ElementType type, int columns, int depth) {
    return {take(cpu::packed_bytes(type, columns, depth)), type, columns, depth};
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Points `weights` into the arena, in the order in which a step streams them.
void lay_out(Weights<Cpu>& weights, Arena& arena) {
  const ModelShape& shape = weights.shape;
  const ElementType type = weights.type;
  weights.embedding = arena.take(static_cast<std::size_t>(shape.vocab) *
                                 static_cast<std::size_t>(shape.hidden) * element_bytes(type));
  weights.layers.assign(static_cast<std::size_t>(shape.layers), {});
  for (LayerWeights<Cpu>& layer : weights.layers) {
    layer.attention_norm = arena.floats(shape.hidden);
    layer.qkv = arena.matrix(type, qkv_columns(shape), shape.hidden);
    if (shape.qkv_bias) layer.qkv_bias = arena.floats(qkv_columns(shape));
    layer.output = arena.matrix(type, shape.hidden, shape.heads * shape.head_dim);
    layer.ffn_norm = arena.floats(shape.hidden);
    layer.gate_up = arena.matrix(type, cpu::gate_up_columns(shape.ffn), shape.hidden);
    layer.down = arena.matrix(type, shape.hidden, shape.ffn);
  }
  weights.final_norm = arena.floats(shape.hidden);
  weights.head = arena.matrix(type, shape.vocab, shape.hidden);
}

/// Brings tensors into the layout that the kernels read.
class Packer {
 public:
  Packer(TensorSource& source, Runtime<Cpu>& runtime, const std::atomic<bool>* stop)
      : source_(source), runtime_(runtime), stop_(stop) {}

  /// One source matrix into columns of a packed one, by the whole team.
  void matrix(const TensorSpec& spec, const cpu::PackedMatrix& packed, MatrixPart part_of, int first) {
    if (is_stopped()) return;
    const cpu::Columns where = columns(part_of);
    const TensorView view = source_.tensor(spec);
    const auto rows = static_cast<int>(spec.rows);
    const auto bytes_per_row = static_cast<std::size_t>(spec.columns) * element_bytes(view.type);
    // Pieces of 16 rows are whole groups or half groups wherever they go, so that members never share a
    // column.
    const auto pack = [&](const cpu::Team& team) {
      const cpu::Range part = cpu::split((rows + 15) / 16, team.share);
      for (std::int64_t piece = part.begin; piece < part.end && !is_stopped(); ++piece) {
        const int row = static_cast<int>(piece) * 16;
        const int count = std::min(16, rows - row);
        const auto* data =
            static_cast<const std::byte*>(view.data) + static_cast<std::size_t>(row) * bytes_per_row;
        if (where == cpu::Columns::stacked) {
          cpu::pack_rows(packed, data, view.type, count, where, first + row);
        } else {
          cpu::PackedMatrix group = packed;
          group.data = static_cast<std::byte*>(packed.data) +
                       static_cast<std::size_t>(piece) *
                           cpu::packed_bytes(packed.type, cpu::kGroupColumns, packed.depth);
          group.columns = cpu::kGroupColumns;
          cpu::pack_rows(group, data, view.type, count, where);
        }
      }
    };
    runtime_.run(pack);
  }

  void vector(const TensorSpec& spec, const float* where) {
    if (is_stopped()) return;
    // The memory is ours and was handed out as const to everybody else.
    auto* target = const_cast<float*>(where);
    const TensorView view = source_.tensor(spec);
    for (std::int64_t i = 0; i < spec.rows; ++i)
      target[i] = view.type == ElementType::f32 ? static_cast<const float*>(view.data)[i]
                                                : to_float(static_cast<const Bf16*>(view.data)[i]);
  }

  void rows(const TensorSpec& spec, const void* where, ElementType type) {
    if (is_stopped()) return;
    auto* target = const_cast<void*>(where);
    const TensorView view = source_.tensor(spec);
    for (std::int64_t i = 0; i < spec.elements(); ++i) {
      if (i % spec.columns == 0 && is_stopped()) return;
      const float value = view.type == ElementType::f32 ? static_cast<const float*>(view.data)[i]
                                                        : to_float(static_cast<const Bf16*>(view.data)[i]);
      if (type == ElementType::f32)
        static_cast<float*>(target)[i] = value;
      else
        static_cast<Bf16*>(target)[i] = to_bf16(value);
    }
  }

 private:
  bool is_stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  static cpu::Columns columns(MatrixPart part) {
    if (part == MatrixPart::gate) return cpu::Columns::gate;
    return part == MatrixPart::up ? cpu::Columns::up : cpu::Columns::stacked;
  }

  TensorSource& source_;
  Runtime<Cpu>& runtime_;
  const std::atomic<bool>* stop_;
};

Weights<Cpu> pack_weights(const ModelShape& shape, ElementType type, TensorSource& source,
                          Runtime<Cpu>& runtime, const std::atomic<bool>* stop) {
  Weights<Cpu> weights;
  weights.shape = shape;
  weights.type = type;
  Arena counting(nullptr);
  lay_out(weights, counting);
  weights.memory.push_back(runtime.allocate(counting.used(), "the weights of " + shape.name));
  Arena arena(weights.memory.back().data());
  lay_out(weights, arena);

  Packer packer(source, runtime, stop);
  fill_weights(weights, packer);
  return weights;
}

}  // namespace

std::size_t weight_bytes(const ModelShape& shape, ElementType type) {
  Weights<Cpu> weights;
  weights.shape = shape;
  weights.type = type;
  Arena counting(nullptr);
  lay_out(weights, counting);
  return counting.used();
}

Weights<Cpu> random_weights(const ModelShape& shape, ElementType type, std::uint64_t seed,
                            Runtime<Cpu>& runtime, const std::atomic<bool>* stop) {
  const std::unique_ptr<TensorSource> source = random_tensors(seed, runtime);
  return pack_weights(shape, type, *source, runtime, stop);
}

Weights<Cpu> load_weights(const std::string& folder, const ModelShape& shape, ElementType type,
                          Runtime<Cpu>& runtime) {
  const std::unique_ptr<TensorSource> source = safetensors_folder(folder);
  return pack_weights(shape, type, *source, runtime, nullptr);
}

}  // namespace foretoken

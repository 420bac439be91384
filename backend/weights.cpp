#include "backend/weights.hpp"

#include <cmath>
#include <cstring>

#include "backend/tensors.hpp"

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

int qkv_columns(const ModelShape& shape) { return (shape.heads + 2 * shape.kv_heads) * shape.head_dim; }

/// Points `weights` into the arena, in the order in which a step streams them.
void lay_out(Weights& weights, Arena& arena) {
  const ModelShape& shape = weights.shape;
  const ElementType type = weights.type;
  weights.embedding = arena.take(static_cast<std::size_t>(shape.vocab) *
                                 static_cast<std::size_t>(shape.hidden) * element_bytes(type));
  weights.layers.assign(static_cast<std::size_t>(shape.layers), {});
  for (LayerWeights& layer : weights.layers) {
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
  void matrix(const TensorSpec& spec, const cpu::PackedMatrix& packed, cpu::Columns where, int first = 0) {
    if (is_stopped()) return;
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

  void vector(const TensorSpec& spec, float* target) {
    if (is_stopped()) return;
    const TensorView view = source_.tensor(spec);
    for (std::int64_t i = 0; i < spec.rows; ++i)
      target[i] = view.type == ElementType::f32 ? static_cast<const float*>(view.data)[i]
                                                : to_float(static_cast<const Bf16*>(view.data)[i]);
  }

  void rows(const TensorSpec& spec, void* target, ElementType type) {
    if (is_stopped()) return;
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

  TensorSource& source_;
  Runtime<Cpu>& runtime_;
  const std::atomic<bool>* stop_;
};

/// The memory is ours and was handed out as const to everybody else.
template <class T>
T* writable(const T* pointer) {
  return const_cast<T*>(pointer);
}

void fill_layer(const ModelShape& shape, int number, const LayerWeights& layer, Packer& packer) {
  const std::string prefix = "model.layers." + std::to_string(number) + ".";
  const std::int64_t hidden = shape.hidden;
  const std::int64_t query = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t pair = std::int64_t{shape.kv_heads} * shape.head_dim;
  const float in = 1.0F / std::sqrt(static_cast<float>(hidden));
  // Two branches a layer add to the residual stream; scaled so that together they add about as much as it
  // began with.
  const float branch = 1.0F / std::sqrt(2.0F * static_cast<float>(shape.layers));
  const auto stacked = cpu::Columns::stacked;
  const auto first_key = static_cast<int>(query);
  const auto first_value = static_cast<int>(query + pair);
  packer.vector({prefix + "input_layernorm.weight", hidden, 0, 1.0F, 0.0F}, writable(layer.attention_norm));
  const std::string attention = prefix + "self_attn.";
  packer.matrix({attention + "q_proj.weight", query, hidden, 0.0F, in}, layer.qkv, stacked);
  packer.matrix({attention + "k_proj.weight", pair, hidden, 0.0F, in}, layer.qkv, stacked, first_key);
  packer.matrix({attention + "v_proj.weight", pair, hidden, 0.0F, in}, layer.qkv, stacked, first_value);
  if (layer.qkv_bias != nullptr) {
    float* bias = writable(layer.qkv_bias);
    packer.vector({attention + "q_proj.bias", query, 0, 0.0F, 0.1F}, bias);
    packer.vector({attention + "k_proj.bias", pair, 0, 0.0F, 0.1F}, bias + first_key);
    packer.vector({attention + "v_proj.bias", pair, 0, 0.0F, 0.1F}, bias + first_value);
  }
  packer.matrix(
      {attention + "o_proj.weight", hidden, query, 0.0F, branch / std::sqrt(static_cast<float>(query))},
      layer.output, stacked);
  packer.vector({prefix + "post_attention_layernorm.weight", hidden, 0, 1.0F, 0.0F},
                writable(layer.ffn_norm));
  packer.matrix({prefix + "mlp.gate_proj.weight", shape.ffn, hidden, 0.0F, in}, layer.gate_up,
                cpu::Columns::gate);
  packer.matrix({prefix + "mlp.up_proj.weight", shape.ffn, hidden, 0.0F, in}, layer.gate_up,
                cpu::Columns::up);
  const float down = branch / std::sqrt(static_cast<float>(shape.ffn));
  packer.matrix({prefix + "mlp.down_proj.weight", hidden, shape.ffn, 0.0F, down}, layer.down, stacked);
}

Weights pack_weights(const ModelShape& shape, ElementType type, TensorSource& source, Runtime<Cpu>& runtime,
                     const std::atomic<bool>* stop) {
  Weights weights;
  weights.shape = shape;
  weights.type = type;
  Arena counting(nullptr);
  lay_out(weights, counting);
  weights.memory.push_back(runtime.allocate(counting.used(), "the weights of " + shape.name));
  Arena arena(weights.memory.back().data());
  lay_out(weights, arena);

  Packer packer(source, runtime, stop);
  const std::int64_t hidden = shape.hidden;
  const float in = 1.0F / std::sqrt(static_cast<float>(hidden));
  const TensorSpec embedding{"model.embed_tokens.weight", shape.vocab, hidden, 0.0F,
                             shape.tied_embeddings ? in : 1.0F};
  packer.rows(embedding, const_cast<void*>(weights.embedding), type);
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    fill_layer(shape, static_cast<int>(i), weights.layers[i], packer);
  packer.vector({"model.norm.weight", hidden, 0, 1.0F, 0.0F}, writable(weights.final_norm));
  packer.matrix(
      shape.tied_embeddings ? embedding : TensorSpec{"lm_head.weight", shape.vocab, hidden, 0.0F, in},
      weights.head, cpu::Columns::stacked);
  return weights;
}

}  // namespace

std::size_t weight_bytes(const ModelShape& shape, ElementType type) {
  Weights weights;
  weights.shape = shape;
  weights.type = type;
  Arena counting(nullptr);
  lay_out(weights, counting);
  return counting.used();
}

Weights random_weights(const ModelShape& shape, ElementType type, std::uint64_t seed, Runtime<Cpu>& runtime,
                       const std::atomic<bool>* stop) {
  const std::unique_ptr<TensorSource> source = random_tensors(seed, runtime);
  return pack_weights(shape, type, *source, runtime, stop);
}

Weights load_weights(const std::string& folder, const ModelShape& shape, ElementType type,
                     Runtime<Cpu>& runtime) {
  const std::unique_ptr<TensorSource> source = safetensors_folder(folder);
  return pack_weights(shape, type, *source, runtime, nullptr);
}

}  // namespace foretoken

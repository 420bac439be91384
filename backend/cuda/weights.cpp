#include "backend/cuda/weights.hpp"

#include <algorithm>
#include <cstring>

#include "backend/cuda/products.hpp"
#include "kernels/cuda/quantise_rows.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kAlignment = 256;
/// What is converted on the host and sent at a time.
constexpr std::size_t kPieceBytes = std::size_t{32} << 20;

/// Hands out pieces of one piece of memory, or only counts while it has none.
class Arena {
 public:
  Arena(std::byte* base, const cuda::ProductDevice& device) : base_(base), device_(device) {}
  std::byte* take(std::size_t bytes) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return piece;
  }
  float* floats(int count) { return reinterpret_cast<float*>(take(static_cast<std::size_t>(count) * 4)); }
  CudaMatrix matrix(cuda::WeightType type, int columns, int depth) {
    CudaMatrix matrix;
    const auto bytes = static_cast<std::size_t>(cuda::weight_bytes(type));
    matrix.data = take(static_cast<std::size_t>(columns) * static_cast<std::size_t>(depth) * bytes);
    matrix.type = type;
    if (type == cuda::WeightType::int8) matrix.scales = floats(columns);
    matrix.columns = columns;
    matrix.depth = depth;
    if (type == cuda::WeightType::bf16)
      matrix.plan = cuda::plan_skinny(columns, depth, static_cast<int>(bytes), device_);
    if (type == cuda::WeightType::int8) matrix.int8_plan = cuda::plan_int8(columns, depth, device_);
    return matrix;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  cuda::ProductDevice device_;
  std::size_t used_ = 0;
};

void lay_out(Weights<Cuda>& weights, cuda::WeightType type, Arena& arena) {
  const ModelShape& shape = weights.shape;
  weights.embedding = arena.take(static_cast<std::size_t>(shape.vocab) *
                                 static_cast<std::size_t>(shape.hidden) * element_bytes(weights.type));
  weights.layers.assign(static_cast<std::size_t>(shape.layers), {});
  for (LayerWeights<Cuda>& layer : weights.layers) {
    layer.attention_norm = arena.floats(shape.hidden);
    layer.qkv = arena.matrix(type, qkv_columns(shape), shape.hidden);
    if (shape.qkv_bias) layer.qkv_bias = arena.floats(qkv_columns(shape));
    layer.output = arena.matrix(type, shape.hidden, shape.heads * shape.head_dim);
    layer.ffn_norm = arena.floats(shape.hidden);
    layer.gate_up = arena.matrix(type, 2 * shape.ffn, shape.hidden);
    layer.down = arena.matrix(type, shape.hidden, shape.ffn);
  }
  weights.final_norm = arena.floats(shape.hidden);
  weights.head = arena.matrix(type, shape.vocab, shape.hidden);
}

/// Sends tensors to the device in pieces.
class Uploader {
 public:
  Uploader(TensorSource& source, Runtime<Cuda>& runtime, Runtime<Cpu>& host, int ffn, bool is_quantised)
      : source_(source),
        runtime_(runtime),
        host_(host),
        ffn_(ffn),
        staging_(runtime.allocate_host(kPieceBytes, "uploads")),
        scratch_(is_quantised ? runtime.allocate(kPieceBytes, "weights to be quantised") : CudaMemory()) {}

  void matrix(const TensorSpec& spec, const CudaMatrix& matrix, MatrixPart part, int first) {
    const std::int64_t row = part == MatrixPart::up ? ffn_ : first;
    const std::int64_t begin = row * spec.columns;
    auto* data = static_cast<std::byte*>(const_cast<void*>(matrix.data));
    if (matrix.type != cuda::WeightType::int8) {
      const ElementType type = matrix.type == cuda::WeightType::f32 ? ElementType::f32 : ElementType::bf16;
      send(source_.tensor(spec), 0, spec.elements(),
           data + begin * static_cast<std::int64_t>(element_bytes(type)), type);
      return;
    }
    quantise(spec, reinterpret_cast<std::int8_t*>(data) + begin, const_cast<float*>(matrix.scales) + row);
  }

  void vector(const TensorSpec& spec, const float* target) {
    send(source_.tensor(spec), 0, spec.elements(), const_cast<float*>(target), ElementType::f32);
  }

  void rows(const TensorSpec& spec, const void* target, ElementType type) {
    send(source_.tensor(spec), 0, spec.elements(), const_cast<void*>(target), type);
  }

 private:
  /// As many whole rows at a time as the scratch holds in bf16; quantised from f32 would need twice the room
  /// and differ from weights that were bf16 to begin with.
  void quantise(const TensorSpec& spec, std::int8_t* target, float* scales) {
    const TensorView view = source_.tensor(spec);
    const std::int64_t rows_at_once = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(kPieceBytes) / (spec.columns * static_cast<std::int64_t>(sizeof(Bf16))));
    for (std::int64_t row = 0; row < spec.rows; row += rows_at_once) {
      const std::int64_t rows = std::min(rows_at_once, spec.rows - row);
      send(view, row * spec.columns, rows * spec.columns, scratch_.data(), ElementType::bf16);
      cuda::QuantiseRowsArgs args;
      args.rows = static_cast<int>(rows);
      args.depth = static_cast<int>(spec.columns);
      args.weights = scratch_.data();
      args.type = ElementType::bf16;
      args.quantised = target + row * spec.columns;
      args.scales = scales + row;
      cuda::quantise_rows(args, runtime_.steps());
      runtime_.synchronize(runtime_.steps());
    }
  }

  void send(const TensorView& view, std::int64_t first, std::int64_t count, void* target, ElementType type) {
    const auto at_once = static_cast<std::int64_t>(kPieceBytes / element_bytes(type));
    for (std::int64_t begin = 0; begin < count; begin += at_once) {
      const std::int64_t size = std::min(at_once, count - begin);
      convert(view, first + begin, size, type);
      const std::size_t bytes = static_cast<std::size_t>(size) * element_bytes(type);
      runtime_.copy(static_cast<std::byte*>(target) + static_cast<std::size_t>(begin) * element_bytes(type),
                    staging_.data(), bytes, runtime_.steps());
      // The staging memory is used again at once.
      runtime_.synchronize(runtime_.steps());
    }
  }

  void convert(const TensorView& view, std::int64_t first, std::int64_t count, ElementType type) {
    const auto work = [&](const cpu::Team& team) {
      const cpu::Range part = cpu::split(count, team.share);
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const float value = view.type == ElementType::f32
                                ? static_cast<const float*>(view.data)[first + i]
                                : to_float(static_cast<const Bf16*>(view.data)[first + i]);
        if (type == ElementType::f32)
          staging_.as<float>()[i] = value;
        else
          staging_.as<Bf16>()[i] = to_bf16(value);
      }
    };
    host_.run(work);
  }

  TensorSource& source_;
  Runtime<Cuda>& runtime_;
  Runtime<Cpu>& host_;
  int ffn_;
  CudaMemory staging_;
  CudaMemory scratch_;
};

}  // namespace

Weights<Cuda> upload_weights(const ModelShape& shape, cuda::WeightType type, TensorSource& source,
                             Runtime<Cuda>& runtime, Runtime<Cpu>& host) {
  Weights<Cuda> weights;
  weights.shape = shape;
  weights.type = type == cuda::WeightType::f32 ? ElementType::f32 : ElementType::bf16;
  const cuda::ProductDevice device = product_device(runtime);
  Arena counting(nullptr, device);
  lay_out(weights, type, counting);
  weights.memory.push_back(runtime.allocate(counting.used(), "the weights of " + shape.name));
  Arena arena(weights.memory.back().data(), device);
  lay_out(weights, type, arena);
  Uploader uploader(source, runtime, host, shape.ffn, type == cuda::WeightType::int8);
  fill_weights(weights, uploader);
  return weights;
}

}  // namespace foretoken

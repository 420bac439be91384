#include "backend/cuda/model.hpp"

#include "backend/cuda/decoder.hpp"
#include "backend/cuda/limits.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

cuda::WeightType weight_type(Precision precision) {
  switch (precision) {
    case Precision::f32: return cuda::WeightType::f32;
    case Precision::bf16: return cuda::WeightType::bf16;
    case Precision::int8: return cuda::WeightType::int8;
    default:
      throw InputError("CUDA backend: expected weights of f32, bf16 or int8, found " +
                       std::string(precision_name(precision)));
  }
}

cuda::KvType kv_type(Precision precision) {
  switch (precision) {
    case Precision::f32: return cuda::KvType::f32;
    case Precision::bf16: return cuda::KvType::bf16;
    case Precision::int8: return cuda::KvType::int8;
    case Precision::fp8: return cuda::KvType::fp8;
    default:
      throw InputError("CUDA backend: expected KV of f32, bf16, int8 or fp8, found " +
                       std::string(precision_name(precision)));
  }
}

const ModelShape& checked(const ModelShape& shape) {
  if (shape.head_dim % 16 != 0 || shape.head_dim > 256)
    throw InputError("CUDA backend: expected head_dim to be a multiple of 16 up to 256, found " +
                     std::to_string(shape.head_dim));
  return shape;
}

Weights<Cuda> seeded_weights(const ModelShape& shape, const PluginModelOptions& options,
                             Runtime<Cuda>& runtime, Runtime<Cpu>& host) {
  const std::unique_ptr<TensorSource> source = random_tensors(options.seed, host);
  return upload_weights(checked(shape), weight_type(options.weight_precision), *source, runtime, host);
}

}  // namespace

CudaModel::CudaModel(const ModelShape& shape, const PluginModelOptions& options)
    : options_(options),
      host_(options.threads > 0 ? options.threads : usable_processors()),
      runtime_(options.threads),
      weights_(seeded_weights(shape, options, runtime_, host_)) {
  static_cast<void>(kv_type(options.kv_precision));
}

std::string CudaModel::place() const { return runtime_.facts().name; }

ProfileOrigin CudaModel::origin() const {
  ProfileOrigin origin;
  origin.device = runtime_.facts().name;
  origin.driver = runtime_.facts().driver;
  origin.clocks = runtime_.facts().clocks;
  return origin;
}

DeviceSheet CudaModel::measure_limits(double seconds) { return measure_cuda_limits(runtime_, seconds); }

std::unique_ptr<Decoder> CudaModel::decoder(const DecoderOptions& options) {
  return std::make_unique<CudaDecoder>(runtime_, weights_, kv_type(options_.kv_precision), options);
}

}  // namespace foretoken

#pragma once
#include <cstdint>

#include "backend/cuda/runtime.hpp"
#include "backend/weights.hpp"
#include "kernels/cuda/int8_product.hpp"
#include "kernels/cuda/product_simple.hpp"
#include "kernels/cuda/skinny_plan.hpp"

namespace foretoken {

/// A weight matrix on the device, [columns][depth] row-major.
struct CudaMatrix {
  const void* data = nullptr;
  cuda::WeightType type = cuda::WeightType::bf16;
  /// [columns], for int8.
  const float* scales = nullptr;
  int columns = 0;
  int depth = 0;
  /// For products of few rows: bf16 by `plan`, int8 by `int8_plan`.
  cuda::SkinnyPlan plan;
  cuda::Int8Plan int8_plan;
};

/// Gate rows come first, then as many up rows.
template <>
struct DeviceTypes<Cuda> {
  using Matrix = CudaMatrix;
  using Memory = CudaMemory;
};

/// Uploads the tensors of `source` as `type`; int8 quantises the matrices on the device, row by row, and
/// keeps the embedding in bf16. `threads` of the host convert. DeviceError when memory is short.
Weights<Cuda> upload_weights(const ModelShape& shape, cuda::WeightType type, TensorSource& source,
                             Runtime<Cuda>& runtime, Runtime<Cpu>& host);

}  // namespace foretoken

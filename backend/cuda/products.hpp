#pragma once
#include "backend/cuda/runtime.hpp"
#include "backend/cuda/weights.hpp"
#include "kernels/element.hpp"

namespace foretoken {

/// The products of a model: by the vendor's library, by our own kernel for few rows, or by that for int8
/// weights.
class CudaProducts {
 public:
  /// Makes the workspace that all of them share. DeviceError when memory is short.
  CudaProducts(Runtime<Cuda>& runtime, const Weights<Cuda>& weights);

  /// y = x W^T for `rows` rows without gaps, queued on `stream`.
  void run(const CudaMatrix& matrix, const CudaMemory& x, ElementType x_type, const CudaMemory& y,
           ElementType y_type, int rows, cuda::Stream stream) const;

 private:
  Runtime<Cuda>* runtime_;
  CudaMemory workspace_;
};

/// What plans of products know of the device.
cuda::ProductDevice product_device(const Runtime<Cuda>& runtime);

}  // namespace foretoken

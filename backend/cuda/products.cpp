#include "backend/cuda/products.hpp"

#include <algorithm>

#include "kernels/cuda/int8_product.hpp"
#include "kernels/cuda/skinny_product.hpp"

namespace foretoken {
namespace {

/// The largest workspace that any product of the model asks for.
std::size_t workspace_bytes(const Weights<Cuda>& weights) {
  std::size_t most = 0;
  const auto count = [&most](const CudaMatrix& matrix) {
    const bool is_int8 = matrix.type == cuda::WeightType::int8;
    most = std::max(most, is_int8 ? cuda::int8_workspace_bytes(matrix.int8_plan, matrix.columns)
                                  : cuda::skinny_workspace_bytes(matrix.plan));
  };
  count(weights.head);
  for (const LayerWeights<Cuda>& layer : weights.layers)
    for (const CudaMatrix* matrix : {&layer.qkv, &layer.output, &layer.gate_up, &layer.down}) count(*matrix);
  return most;
}

/// What the arguments of all three kinds have in common.
template <class Args>
Args shaped(const CudaMatrix& matrix, const CudaMemory& y, int rows) {
  Args args;
  args.rows = rows;
  args.columns = matrix.columns;
  args.depth = matrix.depth;
  args.x_stride = matrix.depth;
  args.y = y.data();
  args.y_stride = matrix.columns;
  return args;
}

}  // namespace

cuda::ProductDevice product_device(const Runtime<Cuda>& runtime) {
  cuda::ProductDevice device;
  device.multiprocessors = runtime.facts().multiprocessors;
  device.shared_bytes = static_cast<int>(runtime.facts().shared_bytes_per_block);
  return device;
}

CudaProducts::CudaProducts(Runtime<Cuda>& runtime, const Weights<Cuda>& weights)
    : runtime_(&runtime),
      workspace_(runtime.allocate(workspace_bytes(weights), "the workspace of products")) {
  runtime.zero(workspace_.data(), workspace_.size(), runtime.steps());
  runtime.synchronize(runtime.steps());
}

void CudaProducts::run(const CudaMatrix& matrix, const CudaMemory& x, ElementType x_type, const CudaMemory& y,
                       ElementType y_type, int rows, cuda::Stream stream) const {
  if (matrix.type == cuda::WeightType::int8) {
    auto args = shaped<cuda::Int8ProductArgs>(matrix, y, rows);
    args.plan = matrix.int8_plan;
    args.x = x.data();
    args.x_type = x_type;
    args.weights = static_cast<const std::int8_t*>(matrix.data);
    args.scales = matrix.scales;
    args.y_type = y_type;
    args.workspace = workspace_.data();
    return cuda::int8_product(args, stream);
  }
  if (matrix.type == cuda::WeightType::bf16 && rows <= cuda::kSkinnyRowsMax &&
      cuda::skinny_product_supports(rows, matrix.columns, matrix.depth, product_device(*runtime_))) {
    auto args = shaped<cuda::SkinnyProductArgs>(matrix, y, rows);
    args.plan = matrix.plan;
    args.x = x.as<Bf16>();
    args.weights = static_cast<const Bf16*>(matrix.data);
    args.y_type = y_type;
    args.workspace = workspace_.data();
    return cuda::skinny_product(args, stream);
  }
  auto args = shaped<cuda::LibraryProductArgs>(matrix, y, rows);
  args.in_type = x_type;
  args.x = x.data();
  args.weights = matrix.data;
  args.out_type = y_type;
  runtime_->product(args, stream);
}

}  // namespace foretoken

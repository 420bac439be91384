#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda {

/// How a weight matrix is stored: plain elements, or a byte each with one f32 scale per row.
enum class WeightType : std::uint8_t { f32, bf16, int8 };

/// Bytes of one weight.
constexpr int weight_bytes(WeightType type) {
  return type == WeightType::f32 ? 4 : type == WeightType::bf16 ? 2 : 1;
}

/// y[M,N] = x[M,K] W[N,K]^T with f32 sums, for any shape and every mix of types.
struct ProductArgs {
  int rows = 0;
  int columns = 0;
  int depth = 0;
  const void* x = nullptr;
  /// Elements from one row of x to the next.
  std::int64_t x_stride = 0;
  ElementType x_type = ElementType::bf16;
  /// [columns, depth] without gaps.
  const void* weights = nullptr;
  WeightType weight_type = WeightType::bf16;
  /// [columns] for int8 weights.
  const float* scales = nullptr;
  void* y = nullptr;
  /// Elements from one row of y to the next.
  std::int64_t y_stride = 0;
  ElementType y_type = ElementType::bf16;
};

/// Whether `product_simple` takes a product of this shape: always, but for empty depths.
constexpr bool product_simple_supports(int rows, int columns, int depth) {
  return rows >= 0 && columns >= 0 && depth >= 1;
}

/// Computes y without tensor cores, plainly: what the fast products are compared with on the device, and the
/// product of f32 activations. Each sum runs over the depth in order, whatever the shape.
void product_simple(const ProductArgs& args, Stream stream);

}  // namespace foretoken::cuda

#pragma once
#include "kernels/cuda/skinny_plan.hpp"
#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda {

/// y[M,N] = x[M,K] W[N,K]^T for few rows, bf16 in, f32 sums: reads the weights once, at the memory's rate. A
/// row's result does not depend, in any bit, on the number of rows or on the other rows.
struct SkinnyProductArgs {
  /// From plan_skinny(columns, depth, 2, device).
  SkinnyPlan plan;
  /// M, 1 to kSkinnyRowsMax.
  int rows = 0;
  /// N.
  int columns = 0;
  /// K, a multiple of 8.
  int depth = 0;
  /// [rows], aligned to 16 bytes.
  const Bf16* x = nullptr;
  /// Elements from one row of x to the next, a multiple of 8.
  std::int64_t x_stride = 0;
  /// [columns, depth] without gaps, aligned to 16 bytes.
  const Bf16* weights = nullptr;
  void* y = nullptr;
  /// Elements from one row of y to the next.
  std::int64_t y_stride = 0;
  ElementType y_type = ElementType::bf16;
  /// skinny_workspace_bytes(plan), zeroed before its first use.
  void* workspace = nullptr;
};

/// Whether `skinny_product` takes a product of this shape on this device.
bool skinny_product_supports(int rows, int columns, int depth, const ProductDevice& device);

/// Computes y. Rows of y beyond M and columns beyond N stay untouched.
void skinny_product(const SkinnyProductArgs& args, Stream stream);

}  // namespace foretoken::cuda

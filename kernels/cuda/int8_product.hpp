#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/skinny_plan.hpp"
#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda {

/// How products of one weight matrix are dealt out; depends on the matrix and the device alone.
struct Int8Plan {
  /// For up to kSkinnyRowsMax rows.
  SkinnyPlan skinny;
  /// For up to 64 rows: pieces that the depth is cut into, so that few columns still keep the device busy.
  int narrow_slices = 1;
  /// Depth of every piece but the last.
  int narrow_slice_depth = 0;
};

/// A plan for W[columns, depth].
Int8Plan plan_int8(int columns, int depth, const ProductDevice& device);

/// Bytes of workspace that products of up to 64 rows need, zeroed once before the first use; see
/// skinny_workspace_bytes.
std::size_t int8_workspace_bytes(const Int8Plan& plan, int columns);

/// y[M,N] = x[M,K] (scale[n] W[N,K])^T with weights of one byte, activations as they are, f32 sums. Up to
/// kSkinnyRowsMax rows of bf16 run at the memory's rate, more on tiles of tensor cores; f32 activations, and
/// depths that are no multiple of 16, take the plain kernel.
struct Int8ProductArgs {
  /// From plan_int8(columns, depth, device); only used for up to 64 rows of bf16.
  Int8Plan plan;
  /// M.
  int rows = 0;
  /// N.
  int columns = 0;
  /// K.
  int depth = 0;
  /// [rows], bf16 aligned to 16 bytes.
  const void* x = nullptr;
  /// Elements from one row of x to the next, a multiple of 8 for bf16.
  std::int64_t x_stride = 0;
  ElementType x_type = ElementType::bf16;
  /// [columns, depth] without gaps, aligned to 16 bytes; from quantise_rows.
  const std::int8_t* weights = nullptr;
  /// [columns].
  const float* scales = nullptr;
  void* y = nullptr;
  /// Elements from one row of y to the next.
  std::int64_t y_stride = 0;
  ElementType y_type = ElementType::bf16;
  /// int8_workspace_bytes(plan, columns), zeroed before its first use.
  void* workspace = nullptr;
};

/// Which kernel takes a product.
enum class Int8Kernel : std::uint8_t { skinny, narrow, wide, plain };

/// The kernel that `int8_product` takes for a shape.
constexpr Int8Kernel int8_kernel(ElementType x_type, int rows, int depth) {
  if (x_type == ElementType::f32 || depth % 16 != 0) return Int8Kernel::plain;
  if (rows <= kSkinnyRowsMax) return Int8Kernel::skinny;
  return rows <= 64 ? Int8Kernel::narrow : Int8Kernel::wide;
}

/// Whether `int8_product` takes a product of this shape on this device.
bool int8_product_supports(ElementType x_type, int rows, int columns, int depth, const ProductDevice& device);

/// Computes y. A row's result does not depend, in any bit, on the other rows, nor on the number of rows while
/// `int8_kernel` stays the same.
void int8_product(const Int8ProductArgs& args, Stream stream);

}  // namespace foretoken::cuda

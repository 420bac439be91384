#pragma once
#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda::detail {

/// What the tiled kernel is given.
struct Int8TiledParams {
  const Bf16* x;
  std::int64_t x_stride;
  const unsigned char* weights;
  const float* scales;
  void* y;
  std::int64_t y_stride;
  bool y_is_f32;
  int rows;
  int columns;
  int depth;
  /// Pieces of the depth, and the depth of each but the last, a multiple of 64. More than one only for up to
  /// 64 rows.
  int slices;
  int slice_depth;
  /// One per column of tiles, and [slices][columns of tiles][64][128], for more than one piece.
  int* counters;
  float* partial_sums;
};

inline constexpr int kInt8TileColumns = 128;
inline constexpr int kInt8TileDepth = 64;
inline constexpr int kInt8NarrowRows = 64;

/// Launches the tiled kernel: any number of rows and columns, depth a multiple of 16.
void int8_tiled_product(const Int8TiledParams& params, Stream stream);

}  // namespace foretoken::cuda::detail

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
};

/// Launches the tiled kernel: any number of rows and columns, depth a multiple of 16.
void int8_tiled_product(const Int8TiledParams& params, Stream stream);

}  // namespace foretoken::cuda::detail

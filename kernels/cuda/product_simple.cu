#include "kernels/cuda/product_simple.hpp"

#include "kernels/cuda/device.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kThreads = 256;
// Sums of a thread in each direction.
constexpr int kOwn = 4;
// A row of a tile is padded so that threads storing down a column of it meet in few banks, and stays whole
// float4s.
constexpr int kPitch = kTile + 4;

__device__ __forceinline__ float weight_to_float(float w) { return w; }
__device__ __forceinline__ float weight_to_float(Bf16 w) { return ft::to_float(w); }
__device__ __forceinline__ float weight_to_float(std::int8_t w) { return static_cast<float>(w); }

// Rows `begin` .. begin + 63 of a matrix, depths from `depth_begin`, turned so that a depth is a row. Zeros
// outside.
template <class Element>
__device__ __forceinline__ void load_tile(float (&tile)[kDepth * kPitch], const Element* matrix,
                                          std::int64_t stride, int begin, int rows, int depth_begin,
                                          int depth) {
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
    const int row = i / kDepth;
    const int k = i % kDepth;
    const bool exists = begin + row < rows && depth_begin + k < depth;
    tile[k * kPitch + row] =
        exists ? weight_to_float(matrix[std::int64_t{begin + row} * stride + depth_begin + k]) : 0.0F;
  }
}

template <class X, class Weight>
__global__ void __launch_bounds__(kThreads) product_simple_kernel(ProductArgs args) {
  FT_SHARED(float, x_tile, kDepth* kPitch);
  FT_SHARED(float, w_tile, kDepth* kPitch);
  const X* x = static_cast<const X*>(args.x);
  const Weight* weights = static_cast<const Weight*>(args.weights);
  const int row_begin = static_cast<int>(blockIdx.y) * kTile;
  const int column_begin = static_cast<int>(blockIdx.x) * kTile;
  const int own_row = static_cast<int>(threadIdx.x) / (kTile / kOwn) * kOwn;
  const int own_column = static_cast<int>(threadIdx.x) % (kTile / kOwn) * kOwn;
  float sums[kOwn][kOwn] = {};
  for (int begin = 0; begin < args.depth; begin += kDepth) {
    load_tile(x_tile, x, args.x_stride, row_begin, args.rows, begin, args.depth);
    load_tile(w_tile, weights, args.depth, column_begin, args.columns, begin, args.depth);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float a[kOwn];
      float b[kOwn];
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        a[i] = x_tile[k * kPitch + own_row + i];
        b[i] = w_tile[k * kPitch + own_column + i];
      }
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int row = row_begin + own_row + i;
      const int column = column_begin + own_column + j;
      if (row >= args.rows || column >= args.columns) continue;
      const float sum = args.scales != nullptr ? sums[i][j] * args.scales[column] : sums[i][j];
      const std::int64_t at = row * args.y_stride + column;
      if (args.y_type == ElementType::f32) {
        static_cast<float*>(args.y)[at] = sum;
      } else {
        static_cast<Bf16*>(args.y)[at] = ft::to_bf16(sum);
      }
    }
  }
}

template <class X>
void launch(const ProductArgs& args, Stream stream) {
  const dim3 grid(static_cast<unsigned>((args.columns + kTile - 1) / kTile),
                  static_cast<unsigned>((args.rows + kTile - 1) / kTile));
  const dim3 block(kThreads);
  switch (args.weight_type) {
    case WeightType::f32: FT_LAUNCH((product_simple_kernel<X, float>), grid, block, 0, stream, args); return;
    case WeightType::bf16: FT_LAUNCH((product_simple_kernel<X, Bf16>), grid, block, 0, stream, args); return;
    case WeightType::int8:
      FT_LAUNCH((product_simple_kernel<X, std::int8_t>), grid, block, 0, stream, args);
      return;
  }
}

}  // namespace

void product_simple(const ProductArgs& args, Stream stream) {
  constexpr const char* kName = "product_simple";
  require(product_simple_supports(args.rows, args.columns, args.depth), kName, "a depth of at least one");
  require(args.rows <= 65535 * kTile, kName, "a grid that devices accept");
  require((args.weight_type == WeightType::int8) == (args.scales != nullptr), kName,
          "scales for int8 and only then");
  if (args.rows == 0 || args.columns == 0) return;
  if (args.x_type == ElementType::f32) {
    launch<float>(args, stream);
  } else {
    launch<Bf16>(args, stream);
  }
}

}  // namespace foretoken::cuda

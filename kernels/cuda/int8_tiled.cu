#include "kernels/cuda/int8_tiled.hpp"

#include "kernels/cuda/product_device.hpp"

// Products of int8 weights and many rows of bf16. A block computes kTileRows x 128 of y; tiles of x and of
// the bytes of W pass through a ring in shared memory and bytes become bf16 on their way to the tensor cores.
// As in the skinny kernels the order of the depth within a multiplication is free: a lane reads 16 weights of
// a row at once and, of x, the 16 numbers of the same depths, 8 at a time, so that no reordering of either
// matrix is needed.

namespace foretoken::cuda::detail {
namespace {

constexpr int kTileColumns = kInt8TileColumns;
constexpr int kTileDepth = kInt8TileDepth;
constexpr int kThreads = 128;
constexpr int kStages = 4;
constexpr int kXLineBytes = kTileDepth * 2;
constexpr int kWLineBytes = kTileDepth;

// Warps side by side over the columns; the others stand below one another, 64 rows each.
template <int kTileRows>
struct Shape {
  static constexpr int kWarpsDown = kTileRows / 64;
  static constexpr int kWarpsAcross = 4 / kWarpsDown;
  static constexpr int kWarpColumns = kTileColumns / kWarpsAcross;
  static constexpr int kColumnTiles = kWarpColumns / 8;
  static constexpr int kXBytes = kTileRows * kXLineBytes;
  static constexpr int kWBytes = kTileColumns * kWLineBytes;
  static constexpr int kStageBytes = kXBytes + kWBytes;
};

// Asks for one depth tile of both matrices, zeros beyond the depth, and leaves the group open. Rows and
// columns beyond the last are read from the last: what comes of them is not stored, and one predicate less is
// alive.
template <int kTileRows>
__device__ __forceinline__ void fetch(const Int8TiledParams& p, unsigned char* stage, int row_begin,
                                      int column_begin, int depth_begin) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int i = 0; i < kTileRows * 8 / kThreads; ++i) {
    const int row = i * (kThreads / 8) + thread / 8;
    const int unit = thread % 8;
    const int depth = depth_begin + unit * 8;
    const Bf16* from = p.x + min(row_begin + row, p.rows - 1) * p.x_stride + depth;
    // Odd rows have neighbouring units exchanged: lanes read every other unit of two rows, and meet in no
    // bank.
    ft::cp_async16(stage + row * kXLineBytes + (unit ^ (row & 1)) * 16, from, depth < p.depth);
  }
  unsigned char* bytes = stage + Shape<kTileRows>::kXBytes;
#pragma unroll
  for (int i = 0; i < kTileColumns * 4 / kThreads; ++i) {
    const int column = i * (kThreads / 4) + thread / 4;
    const int unit = thread % 4;
    const int depth = depth_begin + unit * 16;
    const unsigned char* from =
        p.weights + std::int64_t{min(column_begin + column, p.columns - 1)} * p.depth + depth;
    ft::cp_async16(bytes + column * kWLineBytes + unit * 16, from, depth < p.depth);
  }
}

// The product of one depth tile: 64 rows by kWarpColumns columns a warp.
template <int kTileRows>
__device__ __forceinline__ void multiply(float (&sums)[4][Shape<kTileRows>::kColumnTiles][4],
                                         const unsigned char* stage, int warp_row, int warp_column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4;
  const int place = lane % 4;
  const unsigned char* lines = stage + (warp_row + row) * kXLineBytes;
  const unsigned char* bytes =
      stage + Shape<kTileRows>::kXBytes + (warp_column + row) * kWLineBytes + place * 16;
  // The second half of a lane's weights waits in registers for the second half of x.
  uint2 later[Shape<kTileRows>::kColumnTiles];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int unit = ((place * 2 + half) ^ (row & 1)) * 16;
    uint4 upper[4];
    uint4 lower[4];
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      upper[m] = *reinterpret_cast<const uint4*>(lines + m * 16 * kXLineBytes + unit);
      lower[m] = *reinterpret_cast<const uint4*>(lines + (m * 16 + 8) * kXLineBytes + unit);
    }
#pragma unroll
    for (int n = 0; n < Shape<kTileRows>::kColumnTiles; ++n) {
      std::uint32_t first[2];
      std::uint32_t second[2];
      if (half == 0) {
        const uint4 weights = *reinterpret_cast<const uint4*>(bytes + n * 8 * kWLineBytes);
        int8_to_bf16(weights.x, first[0], first[1]);
        int8_to_bf16(weights.y, second[0], second[1]);
        later[n] = make_uint2(weights.z, weights.w);
      } else {
        int8_to_bf16(later[n].x, first[0], first[1]);
        int8_to_bf16(later[n].y, second[0], second[1]);
      }
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        const std::uint32_t a_first[4] = {upper[m].x, lower[m].x, upper[m].y, lower[m].y};
        const std::uint32_t a_second[4] = {upper[m].z, lower[m].z, upper[m].w, lower[m].w};
        ft::mma_bf16(sums[m][n], a_first, first);
        ft::mma_bf16(sums[m][n], a_second, second);
      }
    }
  }
}

__device__ __forceinline__ void store(const Int8TiledParams& p, int row, int column, float first,
                                      float second) {
  if (row >= p.rows) return;
  const std::int64_t at = row * p.y_stride + column;
  const bool pair = column + 1 < p.columns;
  if (column < p.columns) first *= p.scales[column];
  if (pair) second *= p.scales[column + 1];
  if (p.y_is_f32) {
    float* y = static_cast<float*>(p.y) + at;
    if (column < p.columns) y[0] = first;
    if (pair) y[1] = second;
    return;
  }
  Bf16* y = static_cast<Bf16*>(p.y) + at;
  if (pair && reinterpret_cast<std::uintptr_t>(y) % 4 == 0) {
    *reinterpret_cast<std::uint32_t*>(y) = ft::pack_bf16x2(first, second);
    return;
  }
  if (column < p.columns) y[0] = ft::to_bf16(first);
  if (pair) y[1] = ft::to_bf16(second);
}

// Leaves this slice's sums in the workspace; the last block of a column of tiles adds the slices up, in their
// order.
template <int kColumnTiles>
__device__ __forceinline__ void exchange(const Int8TiledParams& p, const float (&sums)[4][kColumnTiles][4],
                                         int warp_column, int* is_last) {
  constexpr int kTileSums = kInt8NarrowRows * kTileColumns;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t slice_sums = std::int64_t{gridDim.y} * kTileSums;
  float* tile = p.partial_sums + std::int64_t{blockIdx.y} * kTileSums;
  float* own = tile + blockIdx.z * slice_sums;
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int n = 0; n < kColumnTiles; ++n) {
      const int row = m * 16 + lane / 4;
      float2* upper =
          reinterpret_cast<float2*>(own + row * kTileColumns + warp_column + n * 8 + lane % 4 * 2);
      if (row < p.rows) *upper = make_float2(sums[m][n][0], sums[m][n][1]);
      if (row + 8 < p.rows) upper[8 * kTileColumns / 2] = make_float2(sums[m][n][2], sums[m][n][3]);
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *is_last = atomicAdd(p.counters + blockIdx.y, 1) == p.slices - 1 ? 1 : 0;
  __syncthreads();
  if (*is_last == 0) return;
  __threadfence();
  if (threadIdx.x == 0) p.counters[blockIdx.y] = 0;
  constexpr int kQuads = kTileColumns / 4;
  for (int i = static_cast<int>(threadIdx.x); i < p.rows * kQuads; i += kThreads) {
    const int row = i / kQuads;
    const int column = i % kQuads * 4;
    float4 sum = load_from_l2(tile + row * kTileColumns + column);
#pragma unroll 4
    for (int slice = 1; slice < p.slices; ++slice) {
      const float4 more = load_from_l2(tile + slice * slice_sums + row * kTileColumns + column);
      sum.x += more.x;
      sum.y += more.y;
      sum.z += more.z;
      sum.w += more.w;
    }
    const int at = static_cast<int>(blockIdx.y) * kTileColumns + column;
    store(p, row, at, sum.x, sum.y);
    store(p, row, at + 2, sum.z, sum.w);
  }
}

template <int kTileRows>
__global__ void __launch_bounds__(kThreads, 2) int8_tiled_kernel(Int8TiledParams p) {
  using Tile = Shape<kTileRows>;
  FT_DYN_SMEM(ring);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Blocks that run together share columns: the weights of a column of blocks are read from memory once.
  const int row_begin = static_cast<int>(blockIdx.x) * kTileRows;
  const int column_begin = static_cast<int>(blockIdx.y) * kTileColumns;
  const int warp_row = warp / Tile::kWarpsAcross * 64;
  const int warp_column = warp % Tile::kWarpsAcross * Tile::kWarpColumns;
  const int slice_begin = static_cast<int>(blockIdx.z) * p.slice_depth;
  const int steps = (min(p.slice_depth, p.depth - slice_begin) + kTileDepth - 1) / kTileDepth;

  ft::grid_dependency_launch();
  ft::grid_dependency_wait();
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < steps)
      fetch<kTileRows>(p, ring + i * Tile::kStageBytes, row_begin, column_begin,
                       slice_begin + i * kTileDepth);
    ft::cp_async_commit();
  }
  float sums[4][Tile::kColumnTiles][4] = {};
  int stage = 0;
  int stage_to_fill = kStages - 1;
  for (int step = 0; step < steps; ++step) {
    // The tile has landed for all, and all are done with the one before, whose place is filled now.
    ft::cp_async_wait<kStages - 2>();
    __syncthreads();
    const int next = step + kStages - 1;
    if (next < steps)
      fetch<kTileRows>(p, ring + stage_to_fill * Tile::kStageBytes, row_begin, column_begin,
                       slice_begin + next * kTileDepth);
    ft::cp_async_commit();
    multiply<kTileRows>(sums, ring + stage * Tile::kStageBytes, warp_row, warp_column);
    stage = stage + 1 == kStages ? 0 : stage + 1;
    stage_to_fill = stage_to_fill + 1 == kStages ? 0 : stage_to_fill + 1;
  }
  ft::cp_async_wait<0>();
  if constexpr (kTileRows == kInt8NarrowRows) {
    if (p.slices > 1) return exchange<Tile::kColumnTiles>(p, sums, warp_column, reinterpret_cast<int*>(ring));
  }
#pragma unroll
  for (int m = 0; m < 4; ++m) {
#pragma unroll
    for (int n = 0; n < Tile::kColumnTiles; ++n) {
      const int row = row_begin + warp_row + m * 16 + lane / 4;
      const int column = column_begin + warp_column + n * 8 + lane % 4 * 2;
      store(p, row, column, sums[m][n][0], sums[m][n][1]);
      store(p, row + 8, column, sums[m][n][2], sums[m][n][3]);
    }
  }
}

template <int kTileRows>
void launch(const Int8TiledParams& p, Stream stream) {
  const dim3 grid(static_cast<unsigned>((p.rows + kTileRows - 1) / kTileRows),
                  static_cast<unsigned>((p.columns + kTileColumns - 1) / kTileColumns),
                  static_cast<unsigned>(p.slices));
  const std::size_t bytes = std::size_t{kStages} * Shape<kTileRows>::kStageBytes;
  FT_LAUNCH_DEPENDENT((int8_tiled_kernel<kTileRows>), grid, dim3(kThreads), bytes, stream, p);
}

}  // namespace

void int8_tiled_product(const Int8TiledParams& p, Stream stream) {
  if (p.rows <= kInt8NarrowRows) {
    launch<64>(p, stream);
  } else {
    launch<128>(p, stream);
  }
}

}  // namespace foretoken::cuda::detail

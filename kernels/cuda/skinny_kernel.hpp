#pragma once
#include <cstdint>

#include "kernels/cuda/product_device.hpp"
#include "kernels/cuda/skinny_plan.hpp"
#include "kernels/cuda/types.hpp"

// The stream of weights that bf16 and int8 products of few rows share.
//
// A warp reads lines of 128 bytes from the 16 rows of a weight tile into a ring of its own, without a barrier
// of the block, and never stops at the end of a tile, so that bytes stay in flight while sums are exchanged.
// Weights are the 16-row operand of the tensor cores, x the 8-column one. The order of the depth within a
// multiplication is free as long as both operands agree, so a lane takes 16 bytes of a row at once, from the
// weights and from x, where the instruction's own order would need eight loads of two elements.
//
// The warps of a block take every eighth chunk of the depth; sums go over chunks, then warps, then slices, in
// that order whatever the number of rows.

namespace foretoken::cuda::detail {

/// What the skinny kernels are given, in device memory but for the numbers.
struct SkinnyParams {
  const unsigned char* weights;
  /// [columns], or null.
  const float* scales;
  const Bf16* x;
  std::int64_t x_stride;
  void* y;
  std::int64_t y_stride;
  bool y_is_f32;
  int rows;
  int columns;
  int depth;
  SkinnyPlan plan;
  int* counters;
  float* partial_sums;
};

// One row's 16 bytes of bf16 weights are eight depths: two multiplications against one 16-byte unit of x.
struct SkinnyBf16 {
  static constexpr int kElementBytes = 2;
  static constexpr int kUnitsOfX = 1;
  static __device__ __forceinline__ int place_of_unit(int unit) { return unit; }
  template <int kEights>
  static __device__ __forceinline__ void multiply(float (&sums)[kEights][4], const uint4& upper,
                                                  const uint4& lower, const uint4 (&x)[kEights][kUnitsOfX]) {
    const std::uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
    const std::uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
      const std::uint32_t x_first[2] = {x[e][0].x, x[e][0].y};
      const std::uint32_t x_second[2] = {x[e][0].z, x[e][0].w};
      ft::mma_bf16(sums[e], first, x_first);
      ft::mma_bf16(sums[e], second, x_second);
    }
  }
};

// 16 bytes of int8 weights are sixteen depths: four multiplications against two units of x. Units that lanes
// read together stand side by side, the even ones of eight first.
struct SkinnyInt8 {
  static constexpr int kElementBytes = 1;
  static constexpr int kUnitsOfX = 2;
  static __device__ __forceinline__ int place_of_unit(int unit) {
    return (unit & ~7) | (unit & 1) << 2 | (unit >> 1 & 3);
  }
  template <int kEights>
  static __device__ __forceinline__ void multiply(float (&sums)[kEights][4], const uint4& upper,
                                                  const uint4& lower, const uint4 (&x)[kEights][kUnitsOfX]) {
    const std::uint32_t uppers[4] = {upper.x, upper.y, upper.z, upper.w};
    const std::uint32_t lowers[4] = {lower.x, lower.y, lower.z, lower.w};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      std::uint32_t weights[4];
      int8_to_bf16(uppers[word], weights[0], weights[2]);
      int8_to_bf16(lowers[word], weights[1], weights[3]);
#pragma unroll
      for (int e = 0; e < kEights; ++e) {
        const uint4& unit = x[e][word / 2];
        const std::uint32_t pair[2] = {word % 2 == 0 ? unit.x : unit.z, word % 2 == 0 ? unit.y : unit.w};
        ft::mma_bf16(sums[e], weights, pair);
      }
    }
  }
};

// Where the sum of column `column` (0..15) and row `row` of x stands in a warp's buffer: what a warp writes
// at once falls into 32 banks.
template <int kEights>
__device__ __forceinline__ int sum_place(int row, int column) {
  return ((row & 1) * (4 * kEights) + (row >> 1)) * 16 + (column ^ (row >> 2 & 1) * 8);
}

__device__ __forceinline__ void store_sum(const SkinnyParams& p, int row, int column, float sum) {
  if (p.scales != nullptr) sum *= p.scales[column];
  const std::int64_t at = row * p.y_stride + column;
  if (p.y_is_f32) {
    static_cast<float*>(p.y)[at] = sum;
  } else {
    static_cast<Bf16*>(p.y)[at].bits = static_cast<std::uint16_t>(ft::pack_bf16x2(sum, 0.0F) & 0xffffU);
  }
}

// The part of the weights that one block reads, as seen by one lane: which line of which row comes next.
template <class Weights, int kStages>
struct SkinnyReader {
  const unsigned char* source;
  const unsigned char* fallback;
  unsigned char* ring;
  std::int64_t row_bytes;
  int line_bytes_left;
  int columns;
  int lane_row;
  int lane_unit;
  int chunks;
  int warp;
  int tile;
  int tile_end;
  int chunk;
  int stage = 0;

  __device__ SkinnyReader(const SkinnyParams& p, unsigned char* ring_of_warp, int slice_begin,
                          int slice_depth, int tile_begin, int tiles_end, int chunks_of_slice)
      : fallback(p.weights),
        ring(ring_of_warp),
        row_bytes(static_cast<std::int64_t>(p.depth) * Weights::kElementBytes),
        columns(p.columns),
        chunks(chunks_of_slice),
        warp(static_cast<int>(threadIdx.x) / 32),
        tile(tile_begin),
        tile_end(tiles_end),
        chunk(warp) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    lane_row = lane / 8;
    lane_unit = lane % 8;
    line_bytes_left = slice_depth * Weights::kElementBytes - lane_unit * 16;
    source = p.weights + std::int64_t{slice_begin} * Weights::kElementBytes + lane_unit * 16;
    if (warp >= chunks) tile = tile_end;
  }

  __device__ __forceinline__ void advance() {
    chunk += kSkinnyWarps;
    if (chunk < chunks) return;
    chunk = warp;
    ++tile;
  }

  // Asks for the next chunk and closes the group, which is empty when nothing is left: groups are counted.
  __device__ __forceinline__ void fetch() {
    if (tile < tile_end) {
      const int row = tile * kSkinnyTile + lane_row;
      const bool has_depth = chunk * kSkinnyLineBytes < line_bytes_left;
      const unsigned char* from = source + row * row_bytes + chunk * kSkinnyLineBytes;
      // Odd rows have the halves of their line exchanged, so that eight lanes reading two rows meet in no
      // bank.
      unsigned char* to = ring + stage * kSkinnyChunkBytes + lane_row * kSkinnyLineBytes +
                          (lane_unit ^ (lane_row & 1) << 2) * 16;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool exists = has_depth && row + 4 * i < columns;
        ft::cp_async16(to + 4 * i * kSkinnyLineBytes, exists ? from + 4 * i * row_bytes : fallback, exists);
      }
      advance();
    }
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }

  // Asks the L2 cache for the chunks that `fetch` will ask for first; changes nothing.
  __device__ __forceinline__ void prefetch(int count) const {
    SkinnyReader ahead = *this;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int i = 0; i < count && ahead.tile < tile_end; ++i) {
      const int row = ahead.tile * kSkinnyTile + lane;
      const bool exists = lane < kSkinnyTile && row < columns &&
                          ahead.chunk * kSkinnyLineBytes < line_bytes_left + lane_unit * 16;
      if (exists) prefetch_line(source - lane_unit * 16 + row * row_bytes + ahead.chunk * kSkinnyLineBytes);
      ahead.advance();
    }
  }
};

// One chunk: both halves of every line, against the same depths of x.
template <class Weights, int kEights>
__device__ __forceinline__ void multiply_chunk(float (&sums)[kEights][4], const unsigned char* chunk,
                                               const unsigned char* x, int x_row_bytes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 4;
  const int place = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const unsigned char* line = chunk + row * kSkinnyLineBytes + ((half * 4 + place) ^ (row & 1) << 2) * 16;
    const uint4 upper = *reinterpret_cast<const uint4*>(line);
    const uint4 lower = *reinterpret_cast<const uint4*>(line + 8 * kSkinnyLineBytes);
    uint4 units[kEights][Weights::kUnitsOfX];
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int u = 0; u < Weights::kUnitsOfX; ++u) {
        const int unit = (half * Weights::kUnitsOfX + u) * 4 + place;
        units[e][u] = *reinterpret_cast<const uint4*>(x + (8 * e + row) * x_row_bytes + unit * 16);
      }
    }
    Weights::template multiply<kEights>(sums, upper, lower, units);
  }
}

// Brings this slice of x into shared memory, zeros where there is no row or no depth.
template <class Weights, int kEights>
__device__ __forceinline__ void fetch_x(const SkinnyParams& p, unsigned char* x, int x_row_bytes,
                                        int slice_begin, int slice_depth) {
  const int units = (x_row_bytes - 64) / 16;
  for (int row = static_cast<int>(threadIdx.x) / 32; row < 8 * kEights; row += kSkinnyWarps) {
    for (int unit = static_cast<int>(threadIdx.x) % 32; unit < units; unit += 32) {
      const bool exists = row < p.rows && unit * 8 < slice_depth;
      const Bf16* from = exists ? p.x + row * p.x_stride + slice_begin + unit * 8 : p.x;
      ft::cp_async16(x + row * x_row_bytes + Weights::place_of_unit(unit) * 16, from, exists);
    }
  }
}

// The last block of a group to get here adds up the slices of the group's tiles, in their order.
__device__ __forceinline__ void add_slices(const SkinnyParams& p, int group, int tile_begin, int tile_end,
                                           int* is_last) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *is_last = atomicAdd(p.counters + group, 1) == p.plan.slices - 1 ? 1 : 0;
  __syncthreads();
  if (*is_last == 0) return;
  __threadfence();
  if (threadIdx.x == 0) p.counters[group] = 0;
  // Four columns of one row of one tile at a time: one round of loads covers most groups.
  constexpr int kQuads = kSkinnyTile / 4;
  const std::int64_t slice_sums = std::int64_t{p.plan.tiles} * kSkinnyThreads;
  const int quads = (tile_end - tile_begin) * p.rows * kQuads;
  for (int i = static_cast<int>(threadIdx.x); i < quads; i += kSkinnyThreads) {
    const int column = i % kQuads * 4;
    const int row = i / kQuads % p.rows;
    const int tile = tile_begin + i / kQuads / p.rows;
    const float* from = p.partial_sums + std::int64_t{tile} * kSkinnyThreads + row * kSkinnyTile + column;
    float sums[4] = {};
#pragma unroll 4
    for (int slice = 0; slice < p.plan.slices; ++slice) {
      const float4 more = load_from_l2(from + slice * slice_sums);
      sums[0] += more.x;
      sums[1] += more.y;
      sums[2] += more.z;
      sums[3] += more.w;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = tile * kSkinnyTile + column + j;
      if (at < p.columns) store_sum(p, row, at, sums[j]);
    }
  }
}

template <class Weights, int kEights>
__global__ void __launch_bounds__(kSkinnyThreads, 1) skinny_kernel(SkinnyParams p) {
  constexpr int kStages = skinny_stages(kEights);
  constexpr int kWarpSums = kEights * 8 * kSkinnyTile;
  constexpr int kChunkDepth = kSkinnyLineBytes / Weights::kElementBytes;
  FT_DYN_SMEM(shared);
  unsigned char* ring = shared;
  float* exchange = reinterpret_cast<float*>(ring + kStages * kSkinnyWarps * kSkinnyChunkBytes);
  unsigned char* x = reinterpret_cast<unsigned char*>(exchange) + skinny_sums_bytes(kEights);

  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int group = static_cast<int>(blockIdx.x) % p.plan.groups;
  const int slice = static_cast<int>(blockIdx.x) / p.plan.groups;
  const int tile_begin = static_cast<int>(std::int64_t{p.plan.tiles} * group / p.plan.groups);
  const int tile_end = static_cast<int>(std::int64_t{p.plan.tiles} * (group + 1) / p.plan.groups);
  const int slice_begin = slice * p.plan.slice_depth;
  const int slice_depth = min(p.plan.slice_depth, p.depth - slice_begin);
  const int chunks = (slice_depth + kChunkDepth - 1) / kChunkDepth;
  const int x_row_bytes = skinny_row_bytes(p.plan.slice_depth, kChunkDepth);

  unsigned char* ring_of_warp = ring + warp * kStages * kSkinnyChunkBytes;
  SkinnyReader<Weights, kStages> reader(p, ring_of_warp, slice_begin, slice_depth, tile_begin, tile_end,
                                        chunks);
  // Weights do not depend on the kernel before this one; x does, and that kernel may still read what y
  // overwrites.
  reader.prefetch(kStages);
  ft::grid_dependency_launch();
  ft::grid_dependency_wait();
  reader.fetch();
  fetch_x<Weights, kEights>(p, x, x_row_bytes, slice_begin, slice_depth);
  ft::cp_async_commit();
  for (int i = 1; i < kStages - 1; ++i) {
    reader.fetch();
    ft::cp_async_commit();
  }
  ft::cp_async_wait<kStages - 2>();
  __syncthreads();

  int stage = 0;
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    float sums[kEights][4] = {};
    for (int chunk = warp; chunk < chunks; chunk += kSkinnyWarps) {
      // The chunk has landed for every lane, and every lane is done with the one before, whose place is
      // filled now.
      ft::cp_async_wait<kStages - 2>();
      __syncwarp();
      reader.fetch();
      ft::cp_async_commit();
      multiply_chunk<Weights, kEights>(sums, ring_of_warp + stage * kSkinnyChunkBytes,
                                       x + chunk * (kChunkDepth * 2), x_row_bytes);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }

    // Two buffers take turns: one barrier a tile, and whoever writes a buffer again has passed the barrier
    // after the one that its readers waited at.
    float* buffer = exchange + (tile & 1) * kSkinnyWarps * kWarpSums;
#pragma unroll
    for (int e = 0; e < kEights; ++e) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = 8 * e + lane % 4 * 2 + i % 2;
        buffer[warp * kWarpSums + sum_place<kEights>(row, lane / 4 + i / 2 * 8)] = sums[e][i];
      }
    }
    __syncthreads();
    const int row = thread / kSkinnyTile;
    const int column = tile * kSkinnyTile + thread % kSkinnyTile;
    if (thread < kWarpSums && row < p.rows && column < p.columns) {
      const float* from = buffer + sum_place<kEights>(row, thread % kSkinnyTile);
      float sum = 0.0F;
#pragma unroll
      for (int w = 0; w < kSkinnyWarps; ++w) sum += from[w * kWarpSums];
      if (p.plan.slices == 1) {
        store_sum(p, row, column, sum);
      } else {
        p.partial_sums[(std::int64_t{slice} * p.plan.tiles + tile) * kSkinnyThreads + thread] = sum;
      }
    }
  }
  // Groups of copies still open are empty, and every thread leaves with none pending.
  ft::cp_async_wait<0>();
  if (p.plan.slices > 1) add_slices(p, group, tile_begin, tile_end, reinterpret_cast<int*>(ring));
}

// The launcher of both: picks the instance by the number of rows.
template <class Weights>
void launch_skinny(const SkinnyParams& p, Stream stream) {
  constexpr int kChunkDepth = kSkinnyLineBytes / Weights::kElementBytes;
  const dim3 grid(static_cast<unsigned>(p.plan.groups * p.plan.slices));
  const int eights = p.rows <= 8 ? 1 : 2;
  const auto bytes = static_cast<std::size_t>(skinny_shared_bytes(p.plan.slice_depth, kChunkDepth, eights));
  if (eights == 1) {
    FT_LAUNCH_DEPENDENT((skinny_kernel<Weights, 1>), grid, dim3(kSkinnyThreads), bytes, stream, p);
  } else {
    FT_LAUNCH_DEPENDENT((skinny_kernel<Weights, 2>), grid, dim3(kSkinnyThreads), bytes, stream, p);
  }
}

/// Counters and partial sums of a plan of several slices in its workspace.
inline void place_workspace(SkinnyParams& p, void* workspace) {
  if (p.plan.slices == 1) return;
  p.counters = static_cast<int*>(workspace);
  p.partial_sums = reinterpret_cast<float*>(static_cast<unsigned char*>(workspace) + kWorkspaceCounterBytes);
}

}  // namespace foretoken::cuda::detail

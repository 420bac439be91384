#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/host_device.hpp"

namespace foretoken::cuda {

/// What the plans of products know of a device; the numbers of an H200.
struct ProductDevice {
  int multiprocessors = 132;
  /// Shared memory that one block may ask for (cudaDevAttrMaxSharedMemoryPerBlockOptin).
  int shared_bytes = 232448;
};

/// Rows of x that the skinny products take at most.
inline constexpr int kSkinnyRowsMax = 16;

/// How a skinny product is dealt out: the columns in tiles of 16, the tiles in runs over `groups`, the depth
/// over `slices`; one block takes one slice of one group. Depends on the weights and the device alone, so
/// that a row's sums run in the same order whatever the number of rows.
struct SkinnyPlan {
  int tiles = 0;
  int groups = 0;
  int slices = 0;
  /// Depth of every slice but the last, which ends with the matrix.
  int slice_depth = 0;
};

/// A plan for W[columns, depth] of 1-byte or 2-byte elements. Its `slices` is 0 when no plan fits the device.
SkinnyPlan plan_skinny(int columns, int depth, int element_bytes, const ProductDevice& device);

/// Bytes of workspace that the plan needs; 0 for a plan of one slice. A workspace must be zeroed once before
/// its first use. Every product leaves it so that the next one, of whatever plan, can use it; it serves one
/// at a time.
std::size_t skinny_workspace_bytes(const SkinnyPlan& plan);

namespace detail {

inline constexpr int kSkinnyWarps = 8;
inline constexpr int kSkinnyThreads = 32 * kSkinnyWarps;
inline constexpr int kSkinnyTile = 16;
// A chunk is what one warp reads in one stage: a line of 128 bytes from each of the 16 rows of a tile.
inline constexpr int kSkinnyLineBytes = 128;
inline constexpr int kSkinnyChunkBytes = kSkinnyTile * kSkinnyLineBytes;

/// Stages of the ring for one or two groups of eight rows of x: what shared memory holds beside x.
FT_HOST_DEVICE constexpr int skinny_stages(int eights) { return eights == 1 ? 7 : 5; }

/// Bytes from one row of x to the next in shared memory: 64 beyond a multiple of 128, so that a warp's
/// 16-byte reads of eight rows meet in no bank.
FT_HOST_DEVICE constexpr int skinny_row_bytes(int slice_depth, int chunk_depth) {
  return (slice_depth + chunk_depth - 1) / chunk_depth * chunk_depth * 2 + 64;
}

/// Two buffers of one 16 x 8 tile of sums per warp and group of eight rows.
FT_HOST_DEVICE constexpr int skinny_sums_bytes(int eights) {
  return 2 * kSkinnyWarps * eights * 8 * kSkinnyTile * 4;
}

/// All dynamic shared memory of a block.
FT_HOST_DEVICE constexpr int skinny_shared_bytes(int slice_depth, int chunk_depth, int eights) {
  return skinny_stages(eights) * kSkinnyWarps * kSkinnyChunkBytes + skinny_sums_bytes(eights) +
         8 * eights * skinny_row_bytes(slice_depth, chunk_depth);
}

/// Counters at the beginning of a workspace, before the partial sums; as many for all plans, because each
/// finds them as another has left them: zero.
inline constexpr int kWorkspaceCounters = 1024;
inline constexpr std::size_t kWorkspaceCounterBytes = kWorkspaceCounters * sizeof(std::int32_t);

}  // namespace detail
}  // namespace foretoken::cuda

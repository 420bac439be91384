#include "kernels/cuda/skinny_plan.hpp"

#include <algorithm>

namespace foretoken::cuda {
namespace {

// Costs that rank plans, in bytes per nanosecond and nanoseconds: what an H200 reads in all, what one
// multiprocessor with 64 KB in flight can get of it, what it gets of x from the L2 cache, what all of them
// exchange of partial sums through it; the exchange (store, fence, ticket) at the end of a block, and each
// round of loads of its sums.
constexpr double kDeviceRate = 4400;
constexpr double kBlockRate = 60;
constexpr double kCacheRate = 50;
constexpr double kExchangeRate = 5000;
constexpr double kExchangeNs = 1500;
constexpr double kRoundNs = 600;
constexpr int kRankedRows = 8;
constexpr int kSlicesTriedMax = 16;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

double cost_ns(const SkinnyPlan& plan, int depth, int element_bytes) {
  const double tile_bytes = 16.0 * element_bytes;
  const double all = tile_bytes * plan.tiles * depth / kDeviceRate;
  const double block = tile_bytes * ceil_div(plan.tiles, plan.groups) * plan.slice_depth / kBlockRate;
  const double x = 2.0 * kRankedRows * plan.slice_depth / kCacheRate;
  if (plan.slices == 1) return std::max(all, block) + x;
  const int quads = ceil_div(plan.tiles, plan.groups) * kRankedRows * (detail::kSkinnyTile / 4);
  const int rounds = ceil_div(quads, detail::kSkinnyThreads) * ceil_div(plan.slices, 4);
  const double exchanged = 8.0 * kRankedRows * detail::kSkinnyTile * plan.tiles * plan.slices;
  return std::max(all, block) + x + kExchangeNs + rounds * kRoundNs + exchanged / kExchangeRate;
}

}  // namespace

SkinnyPlan plan_skinny(int columns, int depth, int element_bytes, const ProductDevice& device) {
  const int chunk_depth = detail::kSkinnyLineBytes / element_bytes;
  const int tiles = ceil_div(columns, detail::kSkinnyTile);
  SkinnyPlan best;
  double best_ns = 0;
  int tried = 0;
  for (int wanted = 1; wanted <= device.multiprocessors && tried < kSlicesTriedMax; ++wanted) {
    SkinnyPlan plan;
    plan.tiles = tiles;
    plan.slice_depth = ceil_div(ceil_div(depth, wanted), chunk_depth) * chunk_depth;
    plan.slices = ceil_div(depth, plan.slice_depth);
    if (plan.slices < wanted) continue;
    if (detail::skinny_shared_bytes(plan.slice_depth, chunk_depth, 2) > device.shared_bytes) continue;
    ++tried;
    plan.groups = std::min({tiles, device.multiprocessors / plan.slices, detail::kWorkspaceCounters});
    const double ns = cost_ns(plan, depth, element_bytes);
    if (best.slices == 0 || ns < best_ns) {
      best = plan;
      best_ns = ns;
    }
  }
  return best;
}

std::size_t skinny_workspace_bytes(const SkinnyPlan& plan) {
  if (plan.slices <= 1) return 0;
  const std::size_t sums = static_cast<std::size_t>(plan.slices) * static_cast<std::size_t>(plan.tiles);
  return detail::kWorkspaceCounterBytes + sums * kSkinnyRowsMax * detail::kSkinnyTile * sizeof(float);
}

}  // namespace foretoken::cuda

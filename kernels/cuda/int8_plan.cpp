#include <algorithm>

#include "kernels/cuda/int8_product.hpp"
#include "kernels/cuda/int8_tiled.hpp"

namespace foretoken::cuda {
namespace {

// Below this depth a piece costs more to exchange than to read.
constexpr int kSliceDepthMin = 512;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace

Int8Plan plan_int8(int columns, int depth, const ProductDevice& device) {
  Int8Plan plan;
  plan.skinny = plan_skinny(columns, depth, 1, device);
  const int tiles = ceil_div(columns, detail::kInt8TileColumns);
  const int wanted = std::max(1, std::min(device.multiprocessors / tiles, depth / kSliceDepthMin));
  plan.narrow_slice_depth =
      ceil_div(ceil_div(depth, wanted), detail::kInt8TileDepth) * detail::kInt8TileDepth;
  plan.narrow_slices = ceil_div(depth, plan.narrow_slice_depth);
  return plan;
}

std::size_t int8_workspace_bytes(const Int8Plan& plan, int columns) {
  const std::size_t skinny = skinny_workspace_bytes(plan.skinny);
  if (plan.narrow_slices <= 1) return skinny;
  const auto sums = static_cast<std::size_t>(ceil_div(columns, detail::kInt8TileColumns)) *
                    static_cast<std::size_t>(plan.narrow_slices) * detail::kInt8NarrowRows *
                    detail::kInt8TileColumns;
  return std::max(skinny, detail::kWorkspaceCounterBytes + sums * sizeof(float));
}

}  // namespace foretoken::cuda

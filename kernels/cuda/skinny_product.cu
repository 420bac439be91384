#include "kernels/cuda/skinny_product.hpp"

#include "kernels/cuda/skinny_kernel.hpp"

namespace foretoken::cuda {
namespace {

constexpr const char* kName = "skinny_product";

bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

}  // namespace

bool skinny_product_supports(int rows, int columns, int depth, const ProductDevice& device) {
  return rows >= 1 && rows <= kSkinnyRowsMax && columns >= 1 && depth >= 8 && depth % 8 == 0 &&
         plan_skinny(columns, depth, 2, device).slices > 0;
}

void skinny_product(const SkinnyProductArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require(args.rows >= 1 && args.rows <= kSkinnyRowsMax, kName, "1 to 16 rows");
  require(args.columns >= 1 && args.depth >= 8 && args.depth % 8 == 0, kName, "a depth in whole eights");
  require(args.plan.slices >= 1 && args.plan.tiles == (args.columns + 15) / 16, kName,
          "a plan for this shape");
  require(std::int64_t{args.plan.slices} * args.plan.slice_depth >= args.depth, kName,
          "slices over all the depth");
  require(args.x_stride % 8 == 0 && is_aligned(args.x) && is_aligned(args.weights), kName,
          "x and weights aligned to 16 bytes");
  require(args.plan.slices == 1 || args.workspace != nullptr, kName, "a workspace for several slices");
  detail::SkinnyParams p{};
  p.weights = reinterpret_cast<const unsigned char*>(args.weights);
  p.x = args.x;
  p.x_stride = args.x_stride;
  p.y = args.y;
  p.y_stride = args.y_stride;
  p.y_is_f32 = args.y_type == ElementType::f32;
  p.rows = args.rows;
  p.columns = args.columns;
  p.depth = args.depth;
  p.plan = args.plan;
  detail::place_workspace(p, args.workspace);
  detail::launch_skinny<detail::SkinnyBf16>(p, stream);
}

}  // namespace foretoken::cuda

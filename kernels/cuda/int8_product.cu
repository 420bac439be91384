#include "kernels/cuda/int8_product.hpp"

#include "kernels/cuda/int8_tiled.hpp"
#include "kernels/cuda/product_simple.hpp"
#include "kernels/cuda/skinny_kernel.hpp"

namespace foretoken::cuda {
namespace {

constexpr const char* kName = "int8_product";

bool is_aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

void plain(const Int8ProductArgs& args, Stream stream) {
  ProductArgs p;
  p.rows = args.rows;
  p.columns = args.columns;
  p.depth = args.depth;
  p.x = args.x;
  p.x_stride = args.x_stride;
  p.x_type = args.x_type;
  p.weights = args.weights;
  p.weight_type = WeightType::int8;
  p.scales = args.scales;
  p.y = args.y;
  p.y_stride = args.y_stride;
  p.y_type = args.y_type;
  product_simple(p, stream);
}

void skinny(const Int8ProductArgs& args, Stream stream) {
  require(args.plan.skinny.slices >= 1 && args.plan.skinny.tiles == (args.columns + 15) / 16, kName,
          "a plan for this shape");
  require(std::int64_t{args.plan.skinny.slices} * args.plan.skinny.slice_depth >= args.depth, kName,
          "slices over all the depth");
  require(args.plan.skinny.slices == 1 || args.workspace != nullptr, kName, "a workspace for several slices");
  detail::SkinnyParams p{};
  p.weights = reinterpret_cast<const unsigned char*>(args.weights);
  p.scales = args.scales;
  p.x = static_cast<const Bf16*>(args.x);
  p.x_stride = args.x_stride;
  p.y = args.y;
  p.y_stride = args.y_stride;
  p.y_is_f32 = args.y_type == ElementType::f32;
  p.rows = args.rows;
  p.columns = args.columns;
  p.depth = args.depth;
  p.plan = args.plan.skinny;
  detail::place_workspace(p, args.workspace);
  detail::launch_skinny<detail::SkinnyInt8>(p, stream);
}

void tiled(const Int8ProductArgs& args, bool is_narrow, Stream stream) {
  detail::Int8TiledParams p{};
  p.x = static_cast<const Bf16*>(args.x);
  p.x_stride = args.x_stride;
  p.weights = reinterpret_cast<const unsigned char*>(args.weights);
  p.scales = args.scales;
  p.y = args.y;
  p.y_stride = args.y_stride;
  p.y_is_f32 = args.y_type == ElementType::f32;
  p.rows = args.rows;
  p.columns = args.columns;
  p.depth = args.depth;
  p.slices = 1;
  p.slice_depth = args.depth;
  if (is_narrow && args.plan.narrow_slices > 1) {
    p.slices = args.plan.narrow_slices;
    p.slice_depth = args.plan.narrow_slice_depth;
    require(p.slice_depth % detail::kInt8TileDepth == 0 &&
                std::int64_t{p.slices} * p.slice_depth >= args.depth &&
                std::int64_t{p.slices - 1} * p.slice_depth < args.depth,
            kName, "slices over all the depth");
    require(args.workspace != nullptr, kName, "a workspace for several slices");
    p.counters = static_cast<int*>(args.workspace);
    p.partial_sums = reinterpret_cast<float*>(static_cast<unsigned char*>(args.workspace) +
                                              detail::kWorkspaceCounterBytes);
  }
  detail::int8_tiled_product(p, stream);
}

}  // namespace

bool int8_product_supports(ElementType x_type, int rows, int columns, int depth,
                           const ProductDevice& device) {
  if (rows < 1 || columns < 1 || depth < 1) return false;
  return int8_kernel(x_type, rows, depth) != Int8Kernel::skinny ||
         plan_skinny(columns, depth, 1, device).slices > 0;
}

void int8_product(const Int8ProductArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require(args.rows >= 1 && args.columns >= 1 && args.depth >= 1, kName, "a shape");
  require(args.scales != nullptr, kName, "scales");
  const Int8Kernel kernel = int8_kernel(args.x_type, args.rows, args.depth);
  if (kernel == Int8Kernel::plain) return plain(args, stream);
  require(args.x_stride % 8 == 0 && is_aligned(args.x) && is_aligned(args.weights), kName,
          "x and weights aligned to 16 bytes");
  if (kernel == Int8Kernel::skinny) return skinny(args, stream);
  tiled(args, kernel == Int8Kernel::narrow, stream);
}

}  // namespace foretoken::cuda

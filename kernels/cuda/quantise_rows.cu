#include "kernels/cuda/quantise_rows.hpp"

#include "kernels/cuda/device.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// One block a row: a pass for the largest magnitude, whose order cannot matter, and one for the bytes.
template <class Element>
__global__ void __launch_bounds__(kThreads) quantise_rows_kernel(QuantiseRowsArgs args) {
  FT_SHARED(float, warp_largest, kWarps);
  const std::int64_t begin = std::int64_t{blockIdx.x} * args.depth;
  const Element* weights = static_cast<const Element*>(args.weights) + begin;
  const int thread = static_cast<int>(threadIdx.x);
  float largest = 0.0F;
  for (int k = thread; k < args.depth; k += kThreads)
    largest = fmaxf(largest, fabsf(ft::to_float(weights[k])));
#pragma unroll
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
  if (thread % 32 == 0) warp_largest[thread / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, warp_largest[w]);

  constexpr float kNormalMin = 1.17549435e-38F;
  float scale = __fdiv_rn(largest, 127.0F);
  if (!(scale >= kNormalMin)) scale = 0.0F;
  if (thread == 0) args.scales[blockIdx.x] = scale;
  for (int k = thread; k < args.depth; k += kThreads) {
    const float ratio = scale > 0.0F ? __fdiv_rn(ft::to_float(weights[k]), scale) : 0.0F;
    args.quantised[begin + k] = ft::to_int8(ratio);
  }
}

}  // namespace

void quantise_rows(const QuantiseRowsArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require(quantise_rows_supports(args.rows, args.depth), "quantise_rows", "rows of at least one weight");
  const dim3 grid(static_cast<unsigned>(args.rows));
  if (args.type == ElementType::f32) {
    FT_LAUNCH(quantise_rows_kernel<float>, grid, dim3(kThreads), 0, stream, args);
  } else {
    FT_LAUNCH(quantise_rows_kernel<Bf16>, grid, dim3(kThreads), 0, stream, args);
  }
}

}  // namespace foretoken::cuda

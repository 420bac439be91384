#include "kernels/cuda/silu_mul.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

__device__ __forceinline__ float silu(float x) { return __fdividef(x, 1.0F + __expf(-x)); }

template <class T>
__global__ void __launch_bounds__(256) silu_mul_kernel(const SiluMulArgs args, bool is_aligned) {
  ft::grid_dependency_wait();
  ft::grid_dependency_launch();
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const T* gate = static_cast<const T*>(args.gate_up) + row * args.gate_up_stride;
  const T* up = gate + args.features;
  T* out = static_cast<T*>(args.out) + row * args.out_stride;
  const int chunked = is_aligned ? args.features / kRowChunk * kRowChunk : 0;
  const int thread = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const int threads = static_cast<int>(gridDim.y * blockDim.x);
  for (int i = thread * kRowChunk; i < chunked; i += threads * kRowChunk) {
    float g[kRowChunk], u[kRowChunk];
    load_chunk(gate + i, g);
    load_chunk(up + i, u);
#pragma unroll
    for (int j = 0; j < kRowChunk; ++j) u[j] *= silu(g[j]);
    store_chunk(out + i, u);
  }
  for (int i = chunked + thread; i < args.features; i += threads)
    store_one(out + i, silu(ft::to_float(gate[i])) * ft::to_float(up[i]));
}

}  // namespace

void silu_mul(const SiluMulArgs& args, Stream stream) {
  if (args.rows == 0) return;
  const auto bytes = static_cast<int>(element_bytes(args.activation));
  require(args.rows > 0 && args.features > 0 && args.gate_up_stride >= 2 * std::int64_t{args.features} &&
              args.out_stride >= args.features,
          "silu_mul", "bad shape");
  const bool is_aligned = has_aligned_rows(args.gate_up, args.gate_up_stride, bytes) &&
                          has_aligned_rows(args.gate_up, args.features, bytes) &&
                          has_aligned_rows(args.out, args.out_stride, bytes);
  const int threads = row_threads(args.features, 256);
  const int pieces = (args.features + threads * kRowChunk - 1) / (threads * kRowChunk);
  const dim3 grid(args.rows, pieces);
  if (args.activation == ElementType::f32)
    FT_LAUNCH_DEPENDENT((silu_mul_kernel<float>), grid, threads, 0, stream, args, is_aligned);
  else
    FT_LAUNCH_DEPENDENT((silu_mul_kernel<Bf16>), grid, threads, 0, stream, args, is_aligned);
}

}  // namespace foretoken::cuda

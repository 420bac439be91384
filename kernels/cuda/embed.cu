#include "kernels/cuda/embed.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(256) embed_kernel(const EmbedArgs args, bool is_aligned) {
  ft::grid_dependency_wait();
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const std::int32_t token = args.tokens[row];
  const T* from = static_cast<const T*>(args.table) + static_cast<std::int64_t>(token) * args.dim;
  float* out = args.out + row * args.out_stride;
  const int chunked = is_aligned ? args.dim / kRowChunk * kRowChunk : 0;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread * kRowChunk; i < chunked; i += threads * kRowChunk) {
    float x[kRowChunk] = {};
    if (token >= 0) load_chunk(from + i, x);
    store_chunk(out + i, x);
  }
  for (int i = chunked + thread; i < args.dim; i += threads) out[i] = token >= 0 ? ft::to_float(from[i]) : 0.0F;
}

}  // namespace

void embed(const EmbedArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require(args.rows > 0 && args.dim > 0 && args.out_stride >= args.dim, "embed", "bad shape");
  const int threads = row_threads(args.dim, 256);
  const bool is_aligned = has_aligned_rows(args.out, args.out_stride, 4) &&
                          has_aligned_rows(args.table, args.dim, static_cast<int>(element_bytes(args.table_type)));
  if (args.table_type == ElementType::f32)
    FT_LAUNCH_DEPENDENT((embed_kernel<float>), args.rows, threads, 0, stream, args, is_aligned);
  else
    FT_LAUNCH_DEPENDENT((embed_kernel<Bf16>), args.rows, threads, 0, stream, args, is_aligned);
}

}  // namespace foretoken::cuda

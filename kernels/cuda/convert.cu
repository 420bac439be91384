#include "kernels/cuda/convert.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

/// Blocks that give each thread one chunk, at most some waves of any device.
unsigned grid_for(std::int64_t elements, std::int64_t per_thread) {
  const std::int64_t blocks = (elements + per_thread * kThreads - 1) / (per_thread * kThreads);
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

__global__ void __launch_bounds__(kThreads)
    convert_kernel(const float* source, Bf16* target, std::int64_t count, bool is_aligned) {
  const auto thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t chunked = is_aligned ? count / kRowChunk * kRowChunk : 0;
  for (std::int64_t i = thread * kRowChunk; i < chunked; i += threads * kRowChunk) {
    float x[kRowChunk];
    load_chunk(source + i, x);
    store_chunk(target + i, x);
  }
  for (std::int64_t i = chunked + thread; i < count; i += threads) store_one(target + i, source[i]);
}

__global__ void __launch_bounds__(kThreads)
    fill_kernel(std::uint32_t* target, std::uint32_t pattern, std::int64_t words, bool is_aligned) {
  const auto thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads, fours = is_aligned ? words / 4 : 0;
  auto* vectors = reinterpret_cast<uint4*>(target);
  for (std::int64_t i = thread; i < fours; i += threads)
    vectors[i] = make_uint4(pattern, pattern, pattern, pattern);
  for (std::int64_t i = fours * 4 + thread; i < words; i += threads) target[i] = pattern;
}

}  // namespace

void convert_to_bf16(const float* source, Bf16* target, std::int64_t count, Stream stream) {
  require(count >= 0, "convert_to_bf16", "bad count");
  if (count == 0) return;
  const bool is_aligned = has_aligned_rows(source, 0, 4) && has_aligned_rows(target, 0, 2);
  FT_LAUNCH(convert_kernel, grid_for(count, kRowChunk), kThreads, 0, stream, source, target, count, is_aligned);
}

void fill_words(void* target, std::uint32_t pattern, std::int64_t words, Stream stream) {
  require(words >= 0 && reinterpret_cast<std::uintptr_t>(target) % 4 == 0, "fill_words", "bad shape");
  if (words == 0) return;
  auto* to = static_cast<std::uint32_t*>(target);
  FT_LAUNCH(fill_kernel, grid_for(words, 4), kThreads, 0, stream, to, pattern, words, has_aligned_rows(target, 0, 4));
}

}  // namespace foretoken::cuda

#pragma once
#include <cstdint>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/types.hpp"

/// What kernels that walk over rows share.
namespace foretoken::cuda {

/// Elements that one thread moves at a time, in accesses of 16 bytes.
inline constexpr int kRowChunk = 8;

/// For launchers: whether rows from `base`, `stride` elements of `bytes` bytes apart, all begin at multiples of 16 bytes.
inline bool has_aligned_rows(const void* base, std::int64_t stride, int bytes) {
  return reinterpret_cast<std::uintptr_t>(base) % 16 == 0 && stride * bytes % 16 == 0;
}

/// For launchers: threads of a block that works on `count` elements, at most `threads_max`.
inline int row_threads(int count, int threads_max) {
  const int wanted = (count + kRowChunk * 32 - 1) / (kRowChunk * 32) * 32;
  return wanted < 32 ? 32 : wanted > threads_max ? threads_max : wanted;
}

/// Eight elements at an aligned address as floats, and back.
__device__ __forceinline__ void load_chunk(const float* from, float (&x)[kRowChunk]) {
  const float4 a = *reinterpret_cast<const float4*>(from), b = *reinterpret_cast<const float4*>(from + 4);
  x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w;
  x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
}
__device__ __forceinline__ void load_chunk(const Bf16* from, float (&x)[kRowChunk]) {
  const uint4 a = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t pairs[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = ft::low_float(pairs[i]);
    x[2 * i + 1] = ft::high_float(pairs[i]);
  }
}
__device__ __forceinline__ void store_chunk(float* to, const float (&x)[kRowChunk]) {
  *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(to + 4) = make_float4(x[4], x[5], x[6], x[7]);
}
__device__ __forceinline__ void store_chunk(Bf16* to, const float (&x)[kRowChunk]) {
  *reinterpret_cast<uint4*>(to) = make_uint4(ft::pack_bf16x2(x[0], x[1]), ft::pack_bf16x2(x[2], x[3]),
                                             ft::pack_bf16x2(x[4], x[5]), ft::pack_bf16x2(x[6], x[7]));
}

/// One element, rounded to its type.
__device__ __forceinline__ void store_one(float* to, float x) { *to = x; }
__device__ __forceinline__ void store_one(Bf16* to, float x) { *to = ft::to_bf16(x); }

/// The sum, and the largest, over the lanes of a full warp.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) x += __shfl_xor_sync(0xffffffffU, x, bits);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, bits));
  return x;
}

/// The sum over a block of whole warps, the same in every thread and in an order that only the block's size decides.
/// `partial` is shared memory for 32 numbers that nobody uses before or after without a barrier.
__device__ __forceinline__ float block_sum(float x, float* partial) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = x;
  __syncthreads();
  float total = 0.0F;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) total += partial[w];
  return total;
}

}  // namespace foretoken::cuda

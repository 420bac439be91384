#pragma once
#include <cstdint>

#include "kernels/cuda/device.hpp"

// What the products need of the device beyond device.hpp, for both of its builds.

namespace foretoken::cuda::detail {

#if defined(__CUDACC__)

// Asks the L2 cache for the line at `address`, which must be readable.
__device__ __forceinline__ void prefetch_line(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// 16 bytes that other blocks of this launch wrote: past the L1 cache, which is not told of their stores.
__device__ __forceinline__ float4 load_from_l2(const float* address) {
  return __ldcg(reinterpret_cast<const float4*>(address));
}

// The 128 + low 7 bits, and the 128 or 256 to take away, of a signed byte are bfloat16 numbers that the byte
// itself fills in: 0x4300 | bits. Their difference is the byte's value, exactly. `a` holds the low and `b`
// the high two bytes.
__device__ __forceinline__ void int8_to_bf16(std::uint32_t bytes, std::uint32_t& a, std::uint32_t& b) {
  constexpr std::uint32_t kOnes = 0x3f803f80U;
  const std::uint32_t low = __byte_perm(bytes, 0x43434343U, 0x4140);
  const std::uint32_t high = __byte_perm(bytes, 0x43434343U, 0x4342);
  const std::uint32_t low_away = (low & 0xff80ff80U) | 0x80008000U;
  const std::uint32_t high_away = (high & 0xff80ff80U) | 0x80008000U;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(a) : "r"(low & 0xff7fff7fU), "r"(kOnes), "r"(low_away));
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(b) : "r"(high & 0xff7fff7fU), "r"(kOnes), "r"(high_away));
}

#else

inline void prefetch_line(const void*) {}

inline float4 load_from_l2(const float* address) { return *reinterpret_cast<const float4*>(address); }

inline void int8_to_bf16(std::uint32_t bytes, std::uint32_t& a, std::uint32_t& b) {
  const auto half = [bytes](int i) -> std::uint32_t {
    return to_bf16(static_cast<float>(static_cast<std::int8_t>(bytes >> (8 * i) & 0xffU))).bits;
  };
  a = half(0) | half(1) << 16;
  b = half(2) | half(3) << 16;
}

#endif

}  // namespace foretoken::cuda::detail

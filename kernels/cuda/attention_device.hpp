#pragma once
#include <cstdint>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/product_device.hpp"

/// What the kernels of attention by tensor cores share.
namespace foretoken::cuda::detail {

inline constexpr float kLog2E = 1.44269504088896340736F;
/// Stands for minus infinity where differences of it must not be NaN.
inline constexpr float kLowest = -1e30F;

/// Offset in bytes of 16-byte chunk `chunk` of row `row` in a tile whose rows have `row_bytes`: chunks change
/// places so that what a warp reads together lies in different banks. Rows of 64 bytes share a line of banks
/// by twos.
template <int RowBytes>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  static_assert(RowBytes == 64 || RowBytes % 128 == 0);
  if constexpr (RowBytes == 64) return row * RowBytes + (chunk ^ (row >> 1 & 3)) * 16;
  return row * RowBytes + (chunk ^ (row & 7)) * 16;
}

/// Four cached bytes as two pairs of bf16, in order, without their scale.
template <KvType Type>
__device__ __forceinline__ void widen(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
  static_assert(has_scales(Type));
  if constexpr (Type == KvType::int8) {
    int8_to_bf16(bytes, low, high);
  } else {
    const auto value = [bytes](int i) {
      return ft::fp8_to_float(static_cast<std::uint8_t>(bytes >> (8 * i)));
    };
    low = ft::pack_bf16x2(value(0), value(1));
    high = ft::pack_bf16x2(value(2), value(3));
  }
}

/// The first, or the second, numbers of two pairs as a pair.
__device__ __forceinline__ std::uint32_t firsts(std::uint32_t a, std::uint32_t b) {
  return (a & 0xffffU) | b << 16;
}
__device__ __forceinline__ std::uint32_t seconds(std::uint32_t a, std::uint32_t b) {
  return a >> 16 | (b & 0xffff0000U);
}

}  // namespace foretoken::cuda::detail

#pragma once
#include <cstdint>

#include "kernels/host_device.hpp"

/// Narrow number formats in plain integer arithmetic, bit for bit what the device's conversions do.
namespace foretoken::cuda {

/// The e4m3 code nearest to the number whose single-precision bits are given, ties to even, too large ones to
/// +-448; NaN becomes 0x7f.
FT_HOST_DEVICE constexpr std::uint8_t fp8_from_bits(std::uint32_t bits) {
  const std::uint32_t sign = bits >> 24 & 0x80U, magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7f;
  if (magnitude >= 0x43e80000U) return static_cast<std::uint8_t>(sign | 0x7eU);  // 464, halfway to the next
  std::uint32_t code = 0;
  if (magnitude >= 0x3c800000U) {  // 2^-6, the smallest normal number
    code = (magnitude + 0x7ffffU + (magnitude >> 20 & 1U)) >> 20;
    code -= 120U << 3;
  } else if (magnitude >= 0x3a800000U) {                   // above half of the smallest subnormal one, 2^-10
    const std::uint32_t shift = 141U - (magnitude >> 23);  // the unit of the last place is 2^-9
    const std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
    const std::uint32_t half = (1U << (shift - 1)) - 1U;
    code = (mantissa + half + (mantissa >> shift & 1U)) >> shift;
  }
  return static_cast<std::uint8_t>(sign | code);
}

/// The single-precision bits of an e4m3 code; exact.
FT_HOST_DEVICE constexpr std::uint32_t fp8_to_bits(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  std::uint32_t exponent = code >> 3 & 15U, mantissa = code & 7U;
  if ((code & 0x7fU) == 0x7fU) return sign | 0x7fc00000U;
  if (exponent == 0) {
    if (mantissa == 0) return sign;
    exponent = 1;
    while ((mantissa & 8U) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 7U;
  }
  return sign | (exponent + 120U) << 23 | mantissa << 20;
}

/// Bits of a float that is 2^-120 times the number of an e4m3 code other than NaN: a product away from it.
FT_HOST_DEVICE constexpr std::uint32_t fp8_small_bits(std::uint8_t code) {
  return static_cast<std::uint32_t>(code & 0x80U) << 24 | static_cast<std::uint32_t>(code & 0x7fU) << 20;
}

}  // namespace foretoken::cuda

#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

namespace foretoken {

/// How one number is stored: four bytes IEEE single, or its upper two bytes.
enum class ElementType : std::uint8_t { f32, bf16 };

/// A bfloat16 number: the sign, exponent and first seven mantissa bits of a float.
struct Bf16 {
  std::uint16_t bits;
};

/// Bytes one element of `type` occupies.
constexpr std::size_t element_bytes(ElementType type) { return type == ElementType::f32 ? 4 : 2; }

/// Widens a bfloat16; exact.
inline float to_float(Bf16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

/// Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return Bf16{static_cast<std::uint16_t>((bits >> 16) | 0x40U)};
  return Bf16{static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace foretoken

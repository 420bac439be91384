#pragma once
#include "kernels/cuda/simt/builtins.hpp"
#include "kernels/cuda/small_floats.hpp"
#include "kernels/element.hpp"

/// The emulated twins of the instructions in device_ptx.hpp.
namespace ft {

/// Widens a bf16; exact.
inline float to_float(foretoken::Bf16 x) { return foretoken::to_float(x); }
inline float to_float(float x) { return x; }
/// The lower and the upper bf16 of a pair.
inline float low_float(std::uint32_t pair) { return std::bit_cast<float>(pair << 16); }
inline float high_float(std::uint32_t pair) { return std::bit_cast<float>(pair & 0xffff0000U); }
/// Rounds to the nearest bf16, ties to even; NaN becomes 0x7fff, as on a device.
inline foretoken::Bf16 to_bf16(float x) { return std::isnan(x) ? foretoken::Bf16{0x7fff} : foretoken::to_bf16(x); }
/// Two rounded numbers in one word, the first in its lower half.
inline std::uint32_t pack_bf16x2(float low, float high) {
  return to_bf16(low).bits | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
}
/// The nearest e4m3 number's code, ties to even, saturated to +-448; NaN becomes 0x7f. And back.
inline std::uint8_t to_fp8(float x) { return foretoken::cuda::fp8_from_bits(std::bit_cast<std::uint32_t>(x)); }
inline float fp8_to_float(std::uint8_t code) { return std::bit_cast<float>(foretoken::cuda::fp8_to_bits(code)); }
/// The nearest whole number in [-127, 127], ties to even.
inline std::int8_t to_int8(float x) {
  return static_cast<std::int8_t>(std::min(127, std::max(-127, __float2int_rn(x))));
}
/// 2^x and log2(x), on a device with about 22 good bits.
inline float exp2_fast(float x) { return std::exp2(x); }
inline float log2_fast(float x) { return std::log2(x); }

/// Copies 16 bytes from global to shared memory without waiting, or writes 16 zeros where not `is_read` (the source
/// is not touched then).
inline void cp_async16(void* shared, const void* global, bool is_read = true) {
  foretoken::cuda::simt::async_copy(shared, global, is_read);
}
/// Closes the calling thread's group of copies.
inline void cp_async_commit() { foretoken::cuda::simt::async_commit(); }
/// Waits for all but the last `Pending` groups of the calling thread.
template <int Pending>
void cp_async_wait() {
  foretoken::cuda::simt::async_wait(Pending);
}

/// Waits for the kernels that this one depends on; before it, nothing may be read that they write.
inline void grid_dependency_wait() {}
/// Lets the dependent kernel of the stream start.
inline void grid_dependency_launch() {}

namespace detail {

/// A row of eight numbers as it was when its lane came: what lanes that come later have written is not seen, as it need
/// not be on a device without __syncwarp before.
struct MatrixRow {
  std::uint16_t numbers[8];
};

/// The row that lane `index` passed.
inline const std::uint16_t* matrix_row(const void* const* in, int index) {
  return static_cast<const MatrixRow*>(in[index])->numbers;
}

template <bool Transposed, int Count>
void load_matrices(std::uint32_t, const void* const* in, void* const* out) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* words = static_cast<std::uint32_t*>(out[lane]);
    for (int m = 0; m < Count; ++m) {
      const int major = lane / 4, minor = lane % 4 * 2;
      const std::uint16_t* first = matrix_row(in, m * 8 + (Transposed ? minor : major));
      const std::uint16_t* second = Transposed ? matrix_row(in, m * 8 + minor + 1) : first;
      const std::uint32_t low = first[Transposed ? major : minor], high = second[Transposed ? major : minor + 1];
      words[m] = low | high << 16;
    }
  }
}

struct MmaOperands {
  const std::uint32_t* a;
  const std::uint32_t* b;
};

/// D += A B for a 16 x 16 and a 16 x 8 matrix spread over the lanes as m16n8k16 wants it.
inline void multiply_matrices(std::uint32_t, const void* const* in, void* const* out) {
  float a[16][16], b[16][8], d[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& operands = *static_cast<const MmaOperands*>(in[lane]);
    const auto* sums = static_cast<const float*>(out[lane]);
    const int group = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 4; ++i) {
      const int row = group + i % 2 * 8, column = pair + i / 2 * 8;
      a[row][column] = low_float(operands.a[i]);
      a[row][column + 1] = high_float(operands.a[i]);
      d[group + i / 2 * 8][pair + i % 2] = sums[i];
    }
    for (int i = 0; i < 2; ++i) {
      b[pair + i * 8][group] = low_float(operands.b[i]);
      b[pair + i * 8 + 1][group] = high_float(operands.b[i]);
    }
  }
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
  for (int lane = 0; lane < 32; ++lane) {
    auto* sums = static_cast<float*>(out[lane]);
    for (int i = 0; i < 4; ++i) sums[i] = d[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

}  // namespace detail

/// Loads four 8 x 8 matrices of 16-bit numbers: lane l passes the address of row l % 8 of matrix l / 8 and gets, of
/// each, columns 2 (l % 4) and the next of row l / 4 (rows and columns exchanged when Transposed).
template <bool Transposed>
void ldmatrix4(std::uint32_t (&result)[4], const void* row,
               foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  foretoken::cuda::simt::require_shared(row, 16, 16, "ldmatrix");
  detail::MatrixRow seen;
  std::memcpy(&seen, row, sizeof seen);
  foretoken::cuda::simt::warp_operation(0xffffffffU, Transposed ? "ldmatrix.x4.trans" : "ldmatrix.x4",
                                        detail::load_matrices<Transposed, 4>, &seen, result, site);
}
/// The same for two matrices; only the addresses of lanes 0 to 15 count.
template <bool Transposed>
void ldmatrix2(std::uint32_t (&result)[2], const void* row,
               foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  detail::MatrixRow seen{};
  if (foretoken::cuda::simt::lane() < 16) {
    foretoken::cuda::simt::require_shared(row, 16, 16, "ldmatrix");
    std::memcpy(&seen, row, sizeof seen);
  }
  foretoken::cuda::simt::warp_operation(0xffffffffU, Transposed ? "ldmatrix.x2.trans" : "ldmatrix.x2",
                                        detail::load_matrices<Transposed, 2>, &seen, result, site);
}
/// d += a b: m16n8k16 over bf16 with f32 sums.
inline void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  const detail::MmaOperands operands{a, b};
  foretoken::cuda::simt::warp_operation(0xffffffffU, "mma.m16n8k16", detail::multiply_matrices, &operands, d,
                                        site);
}

}  // namespace ft

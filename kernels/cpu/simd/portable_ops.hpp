#pragma once
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/simd/row_pointers.hpp"
#include "kernels/element.hpp"

namespace foretoken::cpu {
namespace {

/// Vectors of 16 floats as Eigen arrays, which Eigen maps to whatever the compiler's target has (SSE2, NEON,
/// none).
struct PortableOps {
  using F = Eigen::Array<float, 16, 1>;
  using Words = Eigen::Array<std::uint32_t, 16, 1>;

  template <class S>
  using Activation = float;

  static constexpr int kRowsMax = 2;
  static constexpr int panels_for(int) { return 2; }
  static constexpr int kAttentionRows = 1;

  static F zero() { return F::Zero(); }
  static F broadcast(float x) { return F::Constant(x); }
  static F load(const float* p) { return Eigen::Map<const F>(p); }
  static void store(float* p, const F& x) { Eigen::Map<F>{p} = x; }
  static F load(const float* p, int n) {
    F x = zero();
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  static void store(float* p, const F& x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  static F load(const Bf16* p) { return load(p, 16); }
  static F load(const Bf16* p, int n) {
    F x = zero();
    for (int i = 0; i < n; ++i) x[i] = to_float(p[i]);
    return x;
  }
  static void store(Bf16* p, const F& x) { store(p, x, 16); }
  static void store(Bf16* p, const F& x, int n) {
    for (int i = 0; i < n; ++i) p[i] = to_bf16(x[i]);
  }

  static F add(const F& a, const F& b) { return a + b; }
  static F sub(const F& a, const F& b) { return a - b; }
  static F mul(const F& a, const F& b) { return a * b; }
  static F div(const F& a, const F& b) { return a / b; }
  static F fma(const F& a, const F& b, const F& c) { return a * b + c; }
  static F max(const F& a, const F& b) { return a.max(b); }
  static F min(const F& a, const F& b) { return a.min(b); }
  static F round(const F& a) {
    // Adding and taking away 1.5 * 2^23 leaves the nearest whole number for |a| < 2^22.
    volatile float magic = 12582912.0F;
    const float m = magic;
    return (a + m) - m;
  }
  static F scale(const F& a, const F& n) {
    F x;
    for (int i = 0; i < 16; ++i)
      x[i] = a[i] * std::bit_cast<float>(static_cast<std::uint32_t>(static_cast<int>(n[i]) + 127) << 23);
    return x;
  }
  static float sum(const F& a) { return a.sum(); }
  static float largest(const F& a) { return a.maxCoeff(); }
  static F keep_first(const F& a, int n, const F& other) {
    F x = other;
    for (int i = 0; i < 16 && i < n; ++i) x[i] = a[i];
    return x;
  }

  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const float*) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const F weights = load(reinterpret_cast<const float*>(w[p] + offset));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] += x.at(r)[depth] * weights;
    }
  }

  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const Bf16*) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      Words pairs, even, odd;
      std::memcpy(pairs.data(), w[p] + offset, sizeof(pairs));
      for (int i = 0; i < 16; ++i) {
        // The first depth of a pair is the one at the lower address.
        even[i] = std::endian::native == std::endian::little ? pairs[i] << 16 : pairs[i] & 0xffff0000U;
        odd[i] = std::endian::native == std::endian::little ? pairs[i] & 0xffff0000U : pairs[i] << 16;
      }
      F widened;
      std::memcpy(widened.data(), even.data(), sizeof(widened));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] += x.at(r)[depth] * widened;
      std::memcpy(widened.data(), odd.data(), sizeof(widened));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] += x.at(r)[depth + 1] * widened;
    }
  }
};

}  // namespace
}  // namespace foretoken::cpu

#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/row_pointers.hpp"
#include "kernels/element.hpp"

// Included after a target pragma by one translation unit; see avx512_ops.hpp for the unnamed namespace.
namespace foretoken::cpu {
namespace {

/// Vectors of 16 floats in two AVX2 registers.
struct Avx2Ops {
  struct F {
    __m256 low, high;
  };

  template <class S>
  using Activation = float;

  static constexpr int kRowsMax = 3;
  static constexpr int panels_for(int rows) { return rows == 1 ? 4 : 2; }
  static constexpr int kAttentionRows = 1;

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.low);
    _mm256_storeu_ps(p + 8, x.high);
  }
  /// All bits set in the first n of 8 lanes.
  static __m256i first_of_8(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static F load(const float* p, int n) {
    return {_mm256_maskload_ps(p, first_of_8(n)), _mm256_maskload_ps(p + 8, first_of_8(n - 8))};
  }
  static void store(float* p, F x, int n) {
    _mm256_maskstore_ps(p, first_of_8(n), x.low);
    _mm256_maskstore_ps(p + 8, first_of_8(n - 8), x.high);
  }

  static __m256 widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static F load(const Bf16* p) {
    return {widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
  }
  static F load(const Bf16* p, int n) {
    alignas(32) Bf16 padded[16] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return load(padded);
  }
  static __m256i rounded_bits(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  }
  static void store(Bf16* p, F x) {
    const __m256i packed = _mm256_packus_epi32(rounded_bits(x.low), rounded_bits(x.high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
  }
  static void store(Bf16* p, F x, int n) {
    alignas(32) Bf16 padded[16];
    store(padded, x);
    for (int i = 0; i < n; ++i) p[i] = padded[i];
  }

  static F add(F a, F b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static F sub(F a, F b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static F mul(F a, F b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static F div(F a, F b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static F fma(F a, F b, F c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  static F max(F a, F b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static F min(F a, F b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
  static __m256 round8(__m256 a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F round(F a) { return {round8(a.low), round8(a.high)}; }
  static __m256 power_of_two(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  /// a * 2^n for whole n from -126 to 127.
  static F scale(F a, F n) { return mul(a, {power_of_two(n.low), power_of_two(n.high)}); }
  static float sum(F a) {
    const __m256 eight = _mm256_add_ps(a.low, a.high);
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
  }
  static float largest(F a) {
    const __m256 eight = _mm256_max_ps(a.low, a.high);
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
  }
  static F keep_first(F a, int n, F other) {
    return {_mm256_blendv_ps(other.low, a.low, _mm256_castsi256_ps(first_of_8(n))),
            _mm256_blendv_ps(other.high, a.high, _mm256_castsi256_ps(first_of_8(n - 8)))};
  }

  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const float*) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const F weights = load(reinterpret_cast<const float*>(w[p] + offset));
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] = fma(broadcast(x.at(r)[depth]), weights, acc[r][p]);
    }
  }

  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const Bf16*) {
    const __m256i upper = _mm256_set1_epi32(-65536);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const auto* pairs = reinterpret_cast<const __m256i*>(w[p] + offset);
      // Even depths of both halves first: the 16 registers cannot hold both depths widened beside the sums.
      const __m256i low = _mm256_loadu_si256(pairs), high = _mm256_loadu_si256(pairs + 1);
      const F even = {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
                      _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] = fma(broadcast(x.at(r)[depth]), even, acc[r][p]);
      const F odd = {_mm256_castsi256_ps(_mm256_and_si256(low, upper)),
                     _mm256_castsi256_ps(_mm256_and_si256(high, upper))};
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r][p] = fma(broadcast(x.at(r)[depth + 1]), odd, acc[r][p]);
    }
  }
};

}  // namespace
}  // namespace foretoken::cpu

#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/row_pointers.hpp"
#include "kernels/element.hpp"

// Included after a target pragma by one translation unit per ISA. Everything is in an unnamed namespace,
// because the same inline function compiled for two instruction sets must never be merged by the linker.
namespace foretoken::cpu {
namespace {

/// Vectors of 16 floats in one AVX-512 register.
struct Avx512Ops {
  using F = __m512;

  /// What activations are stored as when weights are stored as S.
  template <class S>
  using Activation = float;

  /// Rows of a product tile at most, and panels (of 16 columns) of a tile with that many rows.
  static constexpr int kRowsMax = 12;
  static constexpr int panels_for(int rows) { return rows <= 2 ? 8 : 2; }
  /// Rows of an attention tile, which is 4 panels wide.
  static constexpr int kAttentionRows = 6;

  static F zero() { return _mm512_setzero_ps(); }
  static F broadcast(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static __mmask16 first(int n) { return static_cast<__mmask16>((1U << n) - 1U); }
  static F load(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store(float* p, F x, int n) { _mm512_mask_storeu_ps(p, first(n), x); }

  static F widen(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
  static F load(const Bf16* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F load(const Bf16* p, int n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
  static __m256i narrow(F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
  }
  static void store(Bf16* p, F x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x)); }
  static void store(Bf16* p, F x, int n) { _mm256_mask_storeu_epi16(p, first(n), narrow(x)); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  /// a * 2^n for whole n.
  static F scale(F a, F n) { return _mm512_scalef_ps(a, n); }
  static float sum(F a) { return _mm512_reduce_add_ps(a); }
  static float largest(F a) { return _mm512_reduce_max_ps(a); }
  /// a in the first n lanes, `other` in the rest; n may be negative or beyond 16.
  static F keep_first(F a, int n, F other) {
    const unsigned lanes = n <= 0 ? 0U : n >= 16 ? 0xffffU : (1U << n) - 1U;
    return _mm512_mask_mov_ps(other, static_cast<__mmask16>(lanes), a);
  }

  static const float* at(const std::byte* p) { return reinterpret_cast<const float*>(p); }

  /// One step of the depth for R rows and P panels: acc[r][p] += x[r] * w[p]. Panels are 64 bytes a step.
  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const float*) {
    F weights[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) weights[p] = load(at(w[p] + offset));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F value = broadcast(x.at(r)[depth]);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) acc[r][p] = fma(value, weights[p], acc[r][p]);
    }
  }

  /// The same for weights in pairs of bf16: a step is two depths, widened in registers, the even one first.
  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<float, R>& x, int depth, const Bf16*) {
    F even[P], odd[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const __m512i pair = _mm512_loadu_si512(w[p] + offset);
      even[p] = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
      odd[p] = _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32(-65536)));
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const F first_value = broadcast(x.at(r)[depth]);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) acc[r][p] = fma(first_value, even[p], acc[r][p]);
      const F second_value = broadcast(x.at(r)[depth + 1]);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) acc[r][p] = fma(second_value, odd[p], acc[r][p]);
    }
  }
};

}  // namespace
}  // namespace foretoken::cpu

#pragma once
#include <cstring>

#include "kernels/cpu/simd/avx512_ops.hpp"

namespace foretoken::cpu {
namespace {

template <class S>
struct Avx512Bf16Activation {
  using Type = float;
};
template <>
struct Avx512Bf16Activation<Bf16> {
  using Type = Bf16;
};

/// AVX-512 with dot products of bf16 pairs: activations are bf16 wherever weights are, and a step of two
/// depths is one instruction per register.
struct Avx512Bf16Ops : Avx512Ops {
  template <class S>
  using Activation = typename Avx512Bf16Activation<S>::Type;

  using Avx512Ops::step;
  using Avx512Ops::store;

  static void store(Bf16* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }
  static void store(Bf16* p, F x, int n) {
    _mm256_mask_storeu_epi16(p, first(n), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
  }

  template <int R, int P>
  static void step(F (&acc)[R][P], const std::byte* const (&w)[P], std::int64_t offset,
                   const RowPointers<Bf16, R>& x, int depth, const Bf16*) {
    __m512bh weights[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) weights[p] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(w[p] + offset));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      int pair;
      std::memcpy(&pair, x.at(r) + depth, sizeof(pair));
      const __m512bh value = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) acc[r][p] = _mm512_dpbf16_ps(acc[r][p], weights[p], value);
    }
  }
};

}  // namespace
}  // namespace foretoken::cpu

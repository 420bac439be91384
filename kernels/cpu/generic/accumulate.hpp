#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/row_pointers.hpp"
#include "kernels/element.hpp"

// The generic kernels are written once over an Ops type (vectors of 16 floats) and compiled per ISA, after
// its target pragma; see simd/.
namespace foretoken::cpu {
namespace {

/// Depths per step: weights of type S stand in pairs when they are bf16.
template <class S>
inline constexpr int kStepDepth = sizeof(S) == 2 ? 2 : 1;

/// Bytes from one step of a panel to the next in a packed matrix: 32 columns of one depth, or of a pair.
inline constexpr std::int64_t kPackedStepBytes = 128;
/// Bytes of one step of one panel of 16 columns.
inline constexpr std::int64_t kPanelStepBytes = 64;

/// Steps per round of the inner loop: the fewer instructions lie between two loads of weights, the more of
/// those are in flight at once, which is what a batch of 8 is short of.
inline constexpr int kUnroll = 4;

/// A stretch of memory to be fetched alongside, some lines a round: into the first-level cache where this
/// very tile will read it, into the second where a later one will.
struct Ahead {
  const std::byte* next = nullptr;
  int lines_per_round = 0;
  bool is_soon = false;
};

inline void fetch_round(Ahead& ahead) {
  for (int line = 0; line < ahead.lines_per_round; ++line, ahead.next += 64)
    if (ahead.is_soon)
      __builtin_prefetch(ahead.next, 0, 3);
    else
      __builtin_prefetch(ahead.next, 0, 2);
}

template <class O, int R, int P>
inline void clear(typename O::F (&acc)[R][P]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) acc[r][p] = O::zero();
}

/// acc[r][p] += sum over `steps` of x[r] * w[p], one step after the other into a single sum: the order of
/// additions is the same for every R and P, which is what makes results independent of the batch.
template <class O, class S, int R, int P>
inline void accumulate(typename O::F (&acc)[R][P], const typename O::template Activation<S>* x,
                       std::int64_t x_stride, const std::byte* const (&w)[P], std::int64_t step_bytes,
                       int steps, Ahead ahead = {}) {
  RowPointers<typename O::template Activation<S>, R> rows(x, x_stride);
  const std::byte* from[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) from[p] = w[p];
  int k = 0;
  for (; k + kUnroll <= steps; k += kUnroll) {
    fetch_round(ahead);
#pragma GCC unroll 4
    for (int u = 0; u < kUnroll; ++u)
      O::step(acc, from, u * step_bytes, rows, u * kStepDepth<S>, static_cast<const S*>(nullptr));
    rows.advance(kUnroll * kStepDepth<S>);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) from[p] += kUnroll * step_bytes;
  }
  for (; k < steps; ++k) {
    O::step(acc, from, 0, rows, 0, static_cast<const S*>(nullptr));
    rows.advance(kStepDepth<S>);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) from[p] += step_bytes;
  }
}

}  // namespace
}  // namespace foretoken::cpu

#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/element.hpp"

// The generic kernels are written once over an Ops type (vectors of 16 floats) and compiled per ISA, after its target
// pragma; see simd/.
namespace foretoken::cpu {
namespace {

/// Depths per step: weights of type S stand in pairs when they are bf16.
template <class S>
inline constexpr int kStepDepth = sizeof(S) == 2 ? 2 : 1;

/// Bytes from one step of a panel to the next in a packed matrix: 32 columns of one depth, or of a pair.
inline constexpr std::int64_t kPackedStepBytes = 128;
/// Bytes of one step of one panel of 16 columns.
inline constexpr std::int64_t kPanelStepBytes = 64;

template <class O, int R, int P>
inline void clear(typename O::F (&acc)[R][P]) {
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < P; ++p) acc[r][p] = O::zero();
}

/// acc[r][p] += sum over `steps` of x[r] * w[p], one step after the other into a single sum: the order of additions is
/// the same for every R and P, which is what makes results independent of the batch.
template <class O, class S, int R, int P>
inline void accumulate(typename O::F (&acc)[R][P], const typename O::template Activation<S>* x,
                       std::int64_t x_stride, const std::byte* const (&w)[P], std::int64_t step_bytes, int steps) {
  for (int k = 0; k < steps; ++k)
    O::step(acc, w, k * step_bytes, x + k * kStepDepth<S>, x_stride, static_cast<const S*>(nullptr));
}

}  // namespace
}  // namespace foretoken::cpu

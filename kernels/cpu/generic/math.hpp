#pragma once
#include "kernels/element.hpp"

namespace foretoken::cpu {
namespace {

/// 2^x to about one unit in the last place, from the Taylor series of degree 6 on [-1/2, 1/2]; arguments
/// beyond
/// [-126, 127] give the value at the end of that range.
template <class O>
inline typename O::F exp2(typename O::F x) {
  x = O::min(O::max(x, O::broadcast(-126.0F)), O::broadcast(127.0F));
  const auto whole = O::round(x);
  const auto part = O::sub(x, whole);
  auto sum = O::broadcast(1.54035304e-4F);
  sum = O::fma(sum, part, O::broadcast(1.33335581e-3F));
  sum = O::fma(sum, part, O::broadcast(9.61812911e-3F));
  sum = O::fma(sum, part, O::broadcast(5.55041087e-2F));
  sum = O::fma(sum, part, O::broadcast(2.40226507e-1F));
  sum = O::fma(sum, part, O::broadcast(6.93147181e-1F));
  sum = O::fma(sum, part, O::broadcast(1.0F));
  return O::scale(sum, whole);
}

inline constexpr float kLog2E = 1.44269504F;

/// x / (1 + e^-x).
template <class O>
inline typename O::F silu(typename O::F x) {
  const auto power = exp2<O>(O::mul(x, O::broadcast(-kLog2E)));
  return O::div(x, O::add(O::broadcast(1.0F), power));
}

/// Stores the first n of 16 floats as f32 or bf16, in a full store where possible.
template <class O, class T>
inline void store_some(T* target, typename O::F x, int n) {
  if (n >= 16)
    O::store(target, x);
  else
    O::store(target, x, n);
}

}  // namespace
}  // namespace foretoken::cpu

#pragma once
#include "kernels/cpu/generic/attention.hpp"
#include "kernels/cpu/generic/product.hpp"
#include "kernels/cpu/generic/rope.hpp"
#include "kernels/cpu/generic/rows.hpp"

namespace foretoken::cpu {
namespace {

/// The table of the generic kernels over the vectors of O.
template <class O>
constexpr Kernels table_of(Isa isa) {
  return {isa,         product<O>, rms_norm<O>, rope_and_write_kv<O>, attention<O>,
          silu_mul<O>, argmax<O>,  embed<O>,    floats_to_bf16<O>,    bf16_to_floats<O>};
}

}  // namespace
}  // namespace foretoken::cpu

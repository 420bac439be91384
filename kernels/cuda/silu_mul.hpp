#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// out = silu(gate) * up; a row of `gate_up` holds `features` gates and then as many up values.
struct SiluMulArgs {
  int rows = 0;
  int features = 0;
  /// [rows][2 features] of type `activation`.
  const void* gate_up = nullptr;
  std::int64_t gate_up_stride = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType activation = ElementType::bf16;
};

/// Runs on `stream`.
void silu_mul(const SiluMulArgs& args, Stream stream);

}  // namespace foretoken::cuda

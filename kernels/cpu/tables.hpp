#pragma once
#include "kernels/cpu/kernels.hpp"

namespace foretoken::cpu {

/// Kernels in plain C++ over Eigen's fixed-size arrays; run anywhere.
const Kernels& portable_kernels();
/// Kernels for AVX2 and FMA.
const Kernels& avx2_kernels();
/// Kernels for AVX-512 (F, BW, VL, DQ).
const Kernels& avx512_kernels();
/// Kernels for AVX-512 with dot products of bf16 pairs.
const Kernels& avx512_bf16_kernels();

}  // namespace foretoken::cpu

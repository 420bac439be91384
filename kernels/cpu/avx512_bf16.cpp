// GCC 12 takes the undefined operands inside its own intrinsics for ours (its bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/tables.hpp"

#if defined(__x86_64__)

// Standard headers stand before the pragma, so that none of their inline functions is compiled for this ISA
// and merged by the linker into code that runs everywhere.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,avx2,fma,prefer-vector-width=512")
#endif

#include "kernels/cpu/simd/avx512_bf16_ops.hpp"
// The vectors come before the kernels that are written over them.
#include "kernels/cpu/generic/table.hpp"

namespace foretoken::cpu {

const Kernels& avx512_bf16_kernels() {
  static constexpr Kernels kTable = table_of<Avx512Bf16Ops>(Isa::avx512_bf16);
  return kTable;
}

}  // namespace foretoken::cpu

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif

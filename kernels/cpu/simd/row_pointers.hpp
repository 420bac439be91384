#pragma once
#include <cstdint>

namespace foretoken::cpu {
namespace {

/// R rows of activations at equal distance, walked along their depth. Three rows share a pointer, the second
/// and third being reached by the scaled index of an address, because a pointer per row would not fit the
/// registers.
template <class T, int R>
struct RowPointers {
  static constexpr int kPointers = (R + 2) / 3;
  const T* pointer[kPointers];
  std::int64_t stride;

  RowPointers(const T* x, std::int64_t x_stride) : stride(x_stride) {
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i) pointer[i] = x + 3 * i * x_stride;
  }
  /// Moves on along the depth. The addition is hidden from the compiler, which would otherwise derive one
  /// pointer from another (a register per row again) or add them as a vector by way of memory, which stalls
  /// every address.
  void advance(std::int64_t elements) {
    const std::int64_t bytes = elements * static_cast<std::int64_t>(sizeof(T));
#pragma GCC unroll 16
    for (int i = 0; i < kPointers; ++i)
#if defined(__x86_64__)
      asm("addq %1, %0" : "+r"(pointer[i]) : "re"(bytes) : "cc");
#else
      pointer[i] += bytes / static_cast<std::int64_t>(sizeof(T));
#endif
  }
  const T* at(int row) const { return pointer[row / 3] + row % 3 * stride; }
};

}  // namespace
}  // namespace foretoken::cpu

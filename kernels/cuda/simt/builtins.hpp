#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/simt/emulator.hpp"

// CUDA's own names, as far as our kernels use them.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

/// The size of a grid or of a block, from whole numbers of any type.
struct dim3 : foretoken::cuda::simt::Extent {
  constexpr dim3(foretoken::cuda::simt::Extent size) : Extent(size) {}
  constexpr dim3(std::integral auto x_, std::integral auto... more) : Extent{static_cast<std::uint32_t>(x_)} {
    static_assert(sizeof...(more) <= 2);
    const std::uint32_t rest[] = {static_cast<std::uint32_t>(more)..., 1U, 1U};
    y = rest[0];
    z = rest[1];
  }
};

/// CUDA's vectors, aligned as on the device, so that UBSan finds accesses that a device would refuse.
struct alignas(8) int2 {
  int x, y;
};
/// Four of them.
struct alignas(16) int4 {
  int x, y, z, w;
};
/// Two unsigned ones.
struct alignas(8) uint2 {
  std::uint32_t x, y;
};
/// Four unsigned ones.
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
};
/// Two floats.
struct alignas(8) float2 {
  float x, y;
};
/// Four floats.
struct alignas(16) float4 {
  float x, y, z, w;
};
/// Vectors from their components, as CUDA makes them.
constexpr int2 make_int2(int x, int y) { return {x, y}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(std::uint32_t x, std::uint32_t y) { return {x, y}; }
constexpr uint4 make_uint4(std::uint32_t x, std::uint32_t y, std::uint32_t z, std::uint32_t w) {
  return {x, y, z, w};
}
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

// Set whenever another thread of the block is resumed.
inline constinit thread_local foretoken::cuda::simt::Extent threadIdx{};
inline constinit thread_local foretoken::cuda::simt::Extent blockIdx{};
inline constinit thread_local foretoken::cuda::simt::Extent blockDim{};
inline constinit thread_local foretoken::cuda::simt::Extent gridDim{};
inline constexpr int warpSize = 32;

/// Barriers of the block and of the lanes of a warp.
inline void __syncthreads(foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  foretoken::cuda::simt::barrier(site);
}
inline void __syncwarp(std::uint32_t mask = 0xffffffffU,
                       foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  foretoken::cuda::simt::sync_warp(mask, site);
}

namespace foretoken::cuda::simt::detail {

template <class T>
struct Shuffled {
  T value;
  std::uint32_t source;
};

/// Gives each lane the value of the lane it named.
template <class T>
T shuffle(std::uint32_t mask, T value, std::uint32_t source, const char* name, const Site& site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  const Shuffled<T> in{value, source};
  T result;
  warp_operation(
      mask, name,
      [](std::uint32_t lanes, const void* const* inputs, void* const* outputs) {
        for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
          const int to = std::countr_zero(left);
          const std::uint32_t from = static_cast<const Shuffled<T>*>(inputs[to])->source;
          if ((lanes >> from & 1U) == 0)
            fault("lane " + std::to_string(to) + " shuffles from lane " + std::to_string(from) +
                  ", which is not in the mask");
          *static_cast<T*>(outputs[to]) = static_cast<const Shuffled<T>*>(inputs[from])->value;
        }
      },
      &in, &result, site);
  return result;
}

/// Gives each lane `fold` over the values of all lanes, in order of lanes.
template <class T, class Fold>
T reduce(std::uint32_t mask, T value, const char* name, const Site& site, Fold) {
  T result;
  warp_operation(
      mask, name,
      [](std::uint32_t lanes, const void* const* inputs, void* const* outputs) {
        T total{};
        for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
          const auto at = static_cast<std::uint32_t>(std::countr_zero(left));
          total = left == lanes ? Fold::first(at, *static_cast<const T*>(inputs[at]))
                                : Fold::next(total, at, *static_cast<const T*>(inputs[at]));
        }
        for (std::uint32_t left = lanes; left != 0; left &= left - 1)
          *static_cast<T*>(outputs[std::countr_zero(left)]) = total;
      },
      &value, &result, site);
  return result;
}

struct Ballot {
  static std::uint32_t first(std::uint32_t at, std::uint32_t set) { return set << at; }
  static std::uint32_t next(std::uint32_t total, std::uint32_t at, std::uint32_t set) {
    return total | set << at;
  }
};
struct Sum {
  template <class T>
  static T first(std::uint32_t, T x) {
    return x;
  }
  template <class T>
  static T next(T total, std::uint32_t, T x) {
    return total + x;
  }
};
struct Max : Sum {
  template <class T>
  static T next(T total, std::uint32_t, T x) {
    return std::max(total, x);
  }
};
struct Min : Sum {
  template <class T>
  static T next(T total, std::uint32_t, T x) {
    return std::min(total, x);
  }
};

}  // namespace foretoken::cuda::simt::detail

/// Shuffles: each lane gets the value of another one of its segment of `width` lanes, or its own at the
/// segment's edge.
template <class T>
T __shfl_sync(std::uint32_t mask, T value, int source, int width = 32,
              foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  const auto w = static_cast<std::uint32_t>(width), l = foretoken::cuda::simt::lane();
  const std::uint32_t from = (l & ~(w - 1)) | (static_cast<std::uint32_t>(source) & (w - 1));
  return foretoken::cuda::simt::detail::shuffle(mask, value, from, "__shfl_sync", site);
}
template <class T>
T __shfl_xor_sync(std::uint32_t mask, T value, int bits, int width = 32,
                  foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  const auto w = static_cast<std::uint32_t>(width), l = foretoken::cuda::simt::lane();
  const std::uint32_t other = l ^ static_cast<std::uint32_t>(bits);
  const std::uint32_t from = other >= (l & ~(w - 1)) + w ? l : other;
  return foretoken::cuda::simt::detail::shuffle(mask, value, from, "__shfl_xor_sync", site);
}
template <class T>
T __shfl_down_sync(std::uint32_t mask, T value, int delta, int width = 32,
                   foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  const auto w = static_cast<std::uint32_t>(width), l = foretoken::cuda::simt::lane();
  const std::uint32_t other = l + static_cast<std::uint32_t>(delta);
  const std::uint32_t from = other >= (l & ~(w - 1)) + w ? l : other;
  return foretoken::cuda::simt::detail::shuffle(mask, value, from, "__shfl_down_sync", site);
}
template <class T>
T __shfl_up_sync(std::uint32_t mask, T value, int delta, int width = 32,
                 foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  const auto w = static_cast<std::uint32_t>(width), l = foretoken::cuda::simt::lane();
  const auto d = static_cast<std::uint32_t>(delta);
  const std::uint32_t from = (l & (w - 1)) < d ? l : l - d;
  return foretoken::cuda::simt::detail::shuffle(mask, value, from, "__shfl_up_sync", site);
}

/// Votes of the lanes in `mask`.
inline std::uint32_t __ballot_sync(
    std::uint32_t mask, int predicate,
    foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, predicate != 0 ? 1U : 0U, "__ballot_sync", site,
                                               foretoken::cuda::simt::detail::Ballot{});
}
inline int __any_sync(std::uint32_t mask, int predicate,
                      foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, predicate != 0 ? 1 : 0, "__any_sync", site,
                                               foretoken::cuda::simt::detail::Max{});
}
inline int __all_sync(std::uint32_t mask, int predicate,
                      foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, predicate != 0 ? 1 : 0, "__all_sync", site,
                                               foretoken::cuda::simt::detail::Min{});
}

/// Reductions of whole numbers over the lanes in `mask`.
template <class T>
requires std::is_integral_v<T> T __reduce_add_sync(
    std::uint32_t mask, T value, foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, value, "__reduce_add_sync", site,
                                               foretoken::cuda::simt::detail::Sum{});
}
template <class T>
requires std::is_integral_v<T> T __reduce_max_sync(
    std::uint32_t mask, T value, foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, value, "__reduce_max_sync", site,
                                               foretoken::cuda::simt::detail::Max{});
}
template <class T>
requires std::is_integral_v<T> T __reduce_min_sync(
    std::uint32_t mask, T value, foretoken::cuda::simt::Site site = foretoken::cuda::simt::Site::current()) {
  return foretoken::cuda::simt::detail::reduce(mask, value, "__reduce_min_sync", site,
                                               foretoken::cuda::simt::detail::Min{});
}

/// Loads and stores that differ on a device in what the caches keep.
template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}

/// Atomic operations on whole numbers, on global or shared memory; each gives the value before.
template <class T>
requires std::is_integral_v<T> T atomicAdd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <class T>
requires std::is_integral_v<T> T atomicMax(T* address, std::type_identity_t<T> value) {
  T seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value &&
         !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return seen;
}

/// Fences: every store is visible at once here.
inline void __threadfence() {}
inline void __threadfence_block() {}

/// Bits and numbers.
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t __float_as_uint(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline int __popc(std::uint32_t x) { return std::popcount(x); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<std::uint32_t>(x)) + 1; }
inline int __clz(int x) { return std::countl_zero(static_cast<std::uint32_t>(x)); }
inline std::uint32_t __umulhi(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
/// The nearest whole number, ties to even; NaN becomes 0, and what is too large the largest.
inline int __float2int_rn(float x) {
  if (std::isnan(x)) return 0;
  const float rounded = std::nearbyint(x);
  if (rounded >= 2147483648.0F) return 2147483647;
  return rounded <= -2147483648.0F ? -2147483647 - 1 : static_cast<int>(rounded);
}
/// Arithmetic that must not be fused: this library is built with -ffp-contract=off.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0F / a; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }

namespace foretoken::cuda {
using std::max;
using std::min;
}  // namespace foretoken::cuda

#include "kernels/cuda/simt/launch.hpp"

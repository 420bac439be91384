#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/element.hpp"
#include "kernels/host_device.hpp"

// Host code of the plugin, which a C++ compiler builds, defines FORETOKEN_CUDA_PLUGIN to see the same types
// as the kernels beside it. Everything else sees the emulated device.
#if defined(__CUDACC__) || defined(FORETOKEN_CUDA_PLUGIN)
struct CUstream_st;
#endif

namespace foretoken::cuda {

#if defined(__CUDACC__) || defined(FORETOKEN_CUDA_PLUGIN)
using Stream = CUstream_st*;
#else
namespace simt {
class Stream;
}
// Null means: run now, in the calling thread.
using Stream = simt::Stream*;
#endif

/// How cached keys and values are stored. The 8-bit types carry one f32 scale per token and head: int8 holds
/// round(x / scale) with scale = absmax / 127, fp8 (e4m3) holds x / scale with scale = absmax / 448.
enum class KvType : std::uint8_t { f32, bf16, int8, fp8 };

/// Bytes one element of `type` occupies, without its share of a scale.
FT_HOST_DEVICE constexpr int kv_element_bytes(KvType type) {
  return type == KvType::f32 ? 4 : type == KvType::bf16 ? 2 : 1;
}

/// Whether tokens of `type` carry scales.
FT_HOST_DEVICE constexpr bool has_scales(KvType type) { return type == KvType::int8 || type == KvType::fp8; }

/// A launch that could not be made: the kernel's name and what was wrong, in the driver's words or ours.
struct LaunchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// For launchers: throws LaunchError naming `kernel` unless `holds`. Always on.
inline void require(bool holds, const char* kernel, const char* what) {
  if (!holds) throw LaunchError(std::string(kernel) + ": " + what);
}

}  // namespace foretoken::cuda

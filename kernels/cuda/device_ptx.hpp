#pragma once
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "kernels/cuda/small_floats.hpp"
#include "kernels/cuda/types.hpp"

namespace foretoken::cuda::detail {

/// Throws LaunchError naming `kernel` when the last launch failed.
inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw LaunchError(std::string(kernel) + ": " + cudaGetErrorString(error));
}

/// Raises the kernel's limit of dynamic shared memory when a launch needs more than any before; 48 KiB are
/// free.
template <class Kernel>
void allow_dynamic_bytes(Kernel* kernel, const char* name, std::size_t bytes,
                         std::atomic<std::size_t>& allowed) {
  if (bytes <= allowed.load(std::memory_order_relaxed)) return;
  const auto* function = reinterpret_cast<const void*>(kernel);
  if (cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)) !=
      cudaSuccess)
    check_launch(name);
  allowed.store(bytes, std::memory_order_relaxed);
}

/// Whether the current device lets a kernel start before its predecessor has ended.
inline bool has_dependent_launch() {
  static const bool has = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           major >= 9;
  }();
  return has;
}

/// Launches a kernel that may overlap the end of its predecessor in the stream.
template <class... Parameters, class... Arguments>
void launch_dependent(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t dynamic_bytes,
                      cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = dynamic_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = has_dependent_launch() ? 1 : 0;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace foretoken::cuda::detail

#define FT_DYN_SMEM(name) extern __shared__ __align__(128) unsigned char name[]
#define FT_SHARED(type, name, count) __shared__ type name[count]
#define FT_LAUNCH(kernel, grid, block, dynamic_bytes, stream, ...)                               \
  do {                                                                                           \
    static std::atomic<std::size_t> ft_allowed{48 * 1024};                                       \
    ::foretoken::cuda::detail::allow_dynamic_bytes(&kernel, #kernel, dynamic_bytes, ft_allowed); \
    kernel<<<grid, block, dynamic_bytes, stream>>>(__VA_ARGS__);                                 \
    ::foretoken::cuda::detail::check_launch(#kernel);                                            \
  } while (false)
#define FT_LAUNCH_DEPENDENT(kernel, grid, block, dynamic_bytes, stream, ...)                               \
  do {                                                                                                     \
    static std::atomic<std::size_t> ft_allowed{48 * 1024};                                                 \
    ::foretoken::cuda::detail::allow_dynamic_bytes(&kernel, #kernel, dynamic_bytes, ft_allowed);           \
    ::foretoken::cuda::detail::launch_dependent(&kernel, grid, block, dynamic_bytes, stream, __VA_ARGS__); \
    ::foretoken::cuda::detail::check_launch(#kernel);                                                      \
  } while (false)

/// The device's own instructions where C++ has no word for them; simt/tensor.hpp describes each.
namespace ft {

/// Conversions between number formats.
__device__ __forceinline__ float to_float(foretoken::Bf16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}
__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float low_float(std::uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_float(std::uint32_t pair) {
  return __uint_as_float(pair & 0xffff0000U);
}
__device__ __forceinline__ std::uint32_t pack_bf16x2(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
__device__ __forceinline__ foretoken::Bf16 to_bf16(float x) {
  return foretoken::Bf16{static_cast<std::uint16_t>(pack_bf16x2(x, 0.0F))};
}
__device__ __forceinline__ std::uint8_t to_fp8(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0F), "f"(x));
  return static_cast<std::uint8_t>(pair);
#else
  return foretoken::cuda::fp8_from_bits(__float_as_uint(x));
#endif
}
__device__ __forceinline__ float fp8_to_float(std::uint8_t code) {
  const float x =
      __uint_as_float(foretoken::cuda::fp8_small_bits(code)) * 1.329227995784915872903807060280344576e36F;
  return (code & 0x7fU) == 0x7fU ? __uint_as_float(0x7fc00000U) : x;
}
__device__ __forceinline__ std::int8_t to_int8(float x) {
  return static_cast<std::int8_t>(min(127, max(-127, __float2int_rn(x))));
}

/// Approximate powers and logarithms of two.
__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2_fast(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// Copies to shared memory that do not wait.
__device__ __forceinline__ void cp_async16(void* shared, const void* global, bool is_read = true) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(is_read ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

/// Order between a kernel and its predecessor in the stream.
__device__ __forceinline__ void grid_dependency_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void grid_dependency_launch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Matrices of 16-bit numbers from shared memory, and their product.
template <bool Transposed>
__device__ __forceinline__ void ldmatrix4(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}
template <bool Transposed>
__device__ __forceinline__ void ldmatrix2(std::uint32_t (&r)[2], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
                 : "=r"(r[0]), "=r"(r[1])
                 : "r"(address)
                 : "memory");
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace ft

#include "kernels/cuda/read_memory.hpp"

#include "kernels/cuda/device.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 512;
// Loads in flight per thread; 4 blocks of 512 threads hold 128 KiB per multiprocessor.
constexpr int kAhead = 4;

__global__ void read_memory_kernel(const uint4* data, std::int64_t count, std::uint32_t* sum) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kThreads;
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  std::uint32_t total = 0;
  for (; i + (kAhead - 1) * stride < count; i += kAhead * stride) {
    uint4 pieces[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) pieces[j] = data[i + j * stride];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) total += pieces[j].x ^ pieces[j].y ^ pieces[j].z ^ pieces[j].w;
  }
  for (; i < count; i += stride) total += data[i].x ^ data[i].y ^ data[i].z ^ data[i].w;
  // Almost never: the compiler does not know, and no block waits for another's write.
  if (total == 0x9e3779b9U) *sum = total;
}

}  // namespace

void read_memory(const void* data, std::int64_t bytes, int blocks, std::uint32_t* sum, Stream stream) {
  require(bytes % 16 == 0 && blocks >= 1, "read_memory", "expected whole 16 bytes and at least one block");
  FT_LAUNCH(read_memory_kernel, blocks, kThreads, 0, stream, static_cast<const uint4*>(data), bytes / 16,
            sum);
}

}  // namespace foretoken::cuda

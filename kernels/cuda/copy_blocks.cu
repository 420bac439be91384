#include "kernels/cuda/copy_blocks.hpp"

#include "kernels/cuda/device.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
// Accesses of 16 bytes in flight per thread, so that a few blocks fill the bus.
constexpr int kFlight = 4;

__global__ void __launch_bounds__(kThreads) copy_blocks_kernel(const CopyBlocksArgs args) {
  const auto bytes = static_cast<std::int64_t>(args.block_bytes);
  const auto* from = reinterpret_cast<const uint4*>(static_cast<const char*>(args.source) +
                                                    args.from[blockIdx.y] * bytes);
  auto* to = reinterpret_cast<uint4*>(static_cast<char*>(args.target) + args.to[blockIdx.y] * bytes);
  const std::int64_t count = bytes / 16, step = std::int64_t{kThreads} * gridDim.x;
  for (auto i = static_cast<std::int64_t>(blockIdx.x * kThreads + threadIdx.x); i < count; i += step * kFlight) {
    uint4 held[kFlight];
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (i + k * step < count) held[k] = from[i + k * step];
#pragma unroll
    for (int k = 0; k < kFlight; ++k)
      if (i + k * step < count) to[i + k * step] = held[k];
  }
}

}  // namespace

void copy_blocks(const CopyBlocksArgs& args, Stream stream) {
  require(args.blocks >= 0 && args.block_bytes % 16 == 0 &&
              reinterpret_cast<std::uintptr_t>(args.source) % 16 == 0 &&
              reinterpret_cast<std::uintptr_t>(args.target) % 16 == 0,
          "copy_blocks", "bad shape");
  if (args.block_bytes == 0) return;
  const std::size_t wanted = args.block_bytes / 16 / (kThreads * kFlight);
  const auto pieces = static_cast<int>(wanted < 1 ? 1 : wanted > 64 ? 64 : wanted);
  constexpr int kBlocksMax = 65535;
  for (CopyBlocksArgs part = args; part.blocks > 0;) {
    const int blocks = part.blocks < kBlocksMax ? part.blocks : kBlocksMax;
    const dim3 grid(pieces, blocks);
    FT_LAUNCH(copy_blocks_kernel, grid, kThreads, 0, stream, part);
    part.blocks -= blocks;
    part.from += blocks;
    part.to += blocks;
  }
}

}  // namespace foretoken::cuda

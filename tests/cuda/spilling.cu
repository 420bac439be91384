#include "kernels/cuda/device.hpp"

// A kernel that needs far more registers than it may use: tests/cuda/registers must find its spills.
__global__ void __launch_bounds__(1024, 2) spilling_kernel(const float* in, float* out, int count) {
  float kept[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) kept[i] = in[i * count + static_cast<int>(threadIdx.x)];
  for (int round = 0; round < count; ++round)
#pragma unroll
    for (int i = 0; i < 64; ++i) kept[i] = kept[i] * kept[(i + 17) % 64] + kept[(i + 31) % 64];
#pragma unroll
  for (int i = 0; i < 64; ++i) out[i * count + static_cast<int>(threadIdx.x)] = kept[i];
}

#pragma once
#include "backend/cuda/runtime.hpp"
#include "models/device.hpp"

namespace foretoken {

/// Read bandwidth of our own read kernel and the library's rate of bf16 products of random numbers, by
/// events, 10th percentile of times, for about `seconds`. An emulated device has neither: zeros.
DeviceSheet measure_cuda_limits(Runtime<Cuda>& runtime, double seconds);

}  // namespace foretoken

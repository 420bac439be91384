#pragma once
#include "kernels/bench/limits.hpp"
#include "models/device.hpp"

namespace foretoken {

/// The measured limits as a device sheet, for that many threads: what floors are made of.
DeviceSheet machine_sheet(const bench::MachineLimits& limits, int threads);

}  // namespace foretoken

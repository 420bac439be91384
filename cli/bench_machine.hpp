#pragma once
#include <string>

#include "kernels/bench/limits.hpp"
#include "models/device.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// The measured limits as a device sheet, for that many threads: what floors are made of.
DeviceSheet machine_sheet(const bench::MachineLimits& limits, int threads);

/// Refuses an instruction set in FORETOKEN_ISA that does not exist or that this processor has not: a
/// UsageError that lists those it has.
void check_isa();

/// A shipped model by name, or one from a path.
ModelShape model_named(const std::string& name);

}  // namespace foretoken

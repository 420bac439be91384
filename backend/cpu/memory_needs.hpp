#pragma once
#include <string>
#include <vector>

#include "kernels/element.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

struct CalibrationOptions;

/// Something that must be in memory at the same time as its fellows.
struct MemoryPart {
  std::string name;
  double bytes = 0;
};
/// What a run needs, part by part. Bytes are real numbers, since what somebody asks for may be beyond any
/// integer.
using MemoryNeeds = std::vector<MemoryPart>;

/// Numbers that a scenario's weights are stored in on the CPU.
ElementType live_type(const Scenario& scenario);
/// What `run_live` needs: weights, KV pool, swap pool, activations. The scenario must have a model.
MemoryNeeds live_memory(const Scenario& scenario);
/// What `calibrate` needs for the scenario's model.
MemoryNeeds calibration_memory(const Scenario& scenario, const CalibrationOptions& options);
/// What a model's weights need: themselves, and the largest tensor on its way.
MemoryNeeds weights_memory(const ModelShape& shape, ElementType type);
/// Refuses what does not fit before any of it is made: a DeviceError that lists the parts beside what this
/// machine has left.
void check_memory(const MemoryNeeds& needs);

}  // namespace foretoken

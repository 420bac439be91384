#pragma once
#include <cstdint>
#include <string>

#include "backend/decoder.hpp"
#include "models/shape.hpp"
#include "sim/scenario.hpp"

namespace foretoken::testing {

/// A shipped model's shape.
ModelShape shipped_shape(const std::string& name);
/// A tiny model under more work than its pool holds, so that chunks, preemption and waiting all happen.
Scenario busy_scenario(const std::string& preset, int depth, std::uint64_t seed, bool cache, bool swap,
                       std::int64_t requests);
/// Runs the scenario live and checks that all its requests end and that both replays make the same plans.
void check_replays(const Scenario& scenario, DeviceModel& model);

}  // namespace foretoken::testing

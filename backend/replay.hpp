#pragma once
#include "backend/run_recorder.hpp"
#include "sim/core/policy.hpp"

namespace foretoken {

/// What a replay is given of a recorded run.
enum class ReplayKind : std::uint8_t {
  whole,      ///< When each arrival was seen, and when each step ended.
  durations,  ///< The arrivals, and how long each step took.
};

/// Runs the scheduler again on a recorded run and compares its plans with the recorded ones, hash for hash:
/// what "the same scheduler" means.
PlanDifference replay(const RunRecorder& recorded, const Policy& policy, const Capacity& capacity,
                      ReplayKind kind);

}  // namespace foretoken

#pragma once
#include "backend/decoder.hpp"
#include "cli/command.hpp"
#include "models/profile.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

/// `foretoken live`: a scenario in wall-clock time on this machine's processors.
CommandSpec live_command();
/// `foretoken calibrate`: step costs of a scenario's model and engine, measured here.
CommandSpec calibrate_command();

/// A profile, and what it took to measure it.
struct MeasuredProfile {
  Profile profile;
  double seconds = 0;
  double passes = 0;
};
/// Measures step costs in the bounds of the scenario's engine for `seconds_max`, or for one pass over all
/// shapes, and fits them; `progress` is told how far it is. Nothing comes of it once Ctrl-C was pressed.
MeasuredProfile measure_profile(const Scenario& scenario, DeviceModel& model, double seconds_max,
                                const std::function<void(std::string_view)>& progress);

}  // namespace foretoken

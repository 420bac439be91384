#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/trace_spec.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_document.hpp"

namespace foretoken {

/// Flags that choose a scenario and change it, the same in every command that runs one.
struct ScenarioFlags {
  std::string scenario;          ///< Path, "-" or the name of a shipped one.
  std::vector<std::string> set;  ///< `--set path=value`.
  std::vector<std::string> slo;  ///< `--slo`, in addition to the scenario's.
  std::string preset;            ///< Takes the place of the engine, memory settings excepted.
  std::string trace;             ///< Takes the place of the workload's arrivals.
  TraceFlags read;               ///< How to read it.
  std::string profile;           ///< Takes the place of the cost.
  std::string horizon;           ///< Duration.
  double rate_per_s = kNumberNotGiven;
  std::int64_t requests = kNotGiven;
  std::int64_t seed = kNotGiven;
  std::int64_t replicates = kNotGiven;
};

/// The flags as options; `scenario` is the positional argument.
void add_scenario_flags(CommandSpec& command, ScenarioFlags& flags);

/// The scenario in force: file, then environment (`FORETOKEN_*`), then `--set`, then the flags. A flag that
/// cannot be meant is a UsageError.
Scenario load_scenario(const ScenarioFlags& flags);
/// Reads all that the workload would: a trace to its end, so that its faults show before anything runs.
void check_workload(const Scenario& scenario);

}  // namespace foretoken

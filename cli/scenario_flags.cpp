#include "cli/scenario_flags.hpp"

#include <unistd.h>

#include <filesystem>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"
#include "sim/simulation.hpp"

namespace foretoken {
namespace {

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

/// Paths given as flags are relative to where the program was called, those in a scenario to its folder.
std::string absolute(const std::string& path) {
  return path == "-" ? path : std::filesystem::absolute(path).lexically_normal().string();
}

/// Another preset keeps what the memory of the system is and forgets the parameters of the engine before it.
void change_preset(Json& document, const std::string& preset) {
  Json engine = Json::object({{"preset", preset}});
  if (const Json* before = document.find("engine"); before != nullptr && before->is_object()) {
    for (const char* key :
         {"max_model_len", "num_gpu_blocks_override", "gpu_memory_utilization", "block_size"}) {
      if (const Json* value = before->find(key)) engine.set(key, *value);
    }
  }
  document.set("engine", engine);
}

/// The flags that say how to read a trace mean nothing without one, but their faults are told first.
TraceReadOptions read_options(const ScenarioFlags& flags) {
  TraceReadOptions read = trace_read_options(flags.read);
  if (const std::string given = first_trace_flag(flags.read); flags.trace.empty() && !given.empty())
    throw UsageError(given +
                     ": expected --trace FILE beside it, since it says how that file is read; a scenario's "
                     "own trace is read as its workload.trace says");
  return read;
}

Duration horizon_of(const std::string& text) {
  const Duration horizon = parse_duration_flag(text, "--horizon");
  for (const Field& field : scenario_fields("")) {
    if (field.name != "horizon_s" || (seconds(horizon) >= field.low && seconds(horizon) <= field.high))
      continue;
    throw UsageError("--horizon: expected a duration of 1ns to 2500h, found \"" + text + "\"");
  }
  return horizon;
}

/// Seeds change synthetic work and drawn predictions; a trace is what it is.
void check_replicates(const Scenario& scenario, const ScenarioFlags& flags) {
  if (flags.replicates == kNotGiven || flags.replicates == 1) return;
  if (scenario.workload.arrivals.kind != ArrivalKind::trace ||
      scenario.policy().order == Order::shortest_predicted)
    return;
  throw UsageError(
      "--replicates: expected 1 on a trace, which is the same with every seed and has its intervals "
      "from resampling the run, found " +
      std::to_string(flags.replicates) + "; it applies to arrivals that are drawn");
}

void change_trace(Scenario& scenario, const ScenarioFlags& flags, const TraceReadOptions& read) {
  WorkloadSpec& workload = scenario.workload;
  // Classes of synthetic work describe lengths that the trace now gives.
  workload.classes.clear();
  workload.arrivals = ArrivalSpec{};
  workload.arrivals.kind = ArrivalKind::trace;
  workload.requests = 0;
  workload.duration = kForever;
  workload.trace = TraceSpec{};
  workload.trace.path = flags.trace == "-" ? flags.trace : std::filesystem::path(flags.trace).string();
  workload.trace.read = read;
  // Seeds of synthetic work mean nothing to a trace.
  if (flags.replicates == kNotGiven) scenario.replicates = 1;
}

}  // namespace

void add_scenario_flags(CommandSpec& command, ScenarioFlags& flags) {
  const std::vector<OptionSpec> options = {
      {"scenario", &flags.scenario, "SCENARIO",
       "A file, - for standard input, or a shipped name (config list)", true},
      {"--set", &flags.set, "PATH=VALUE", "Overrides a value of the scenario; may repeat"},
      {"--preset", &flags.preset, "NAME", "Another engine preset with its defaults; memory settings stay"},
      {"--trace", &flags.trace, "FILE", "A trace instead of the scenario's arrivals"},
      {"--profile", &flags.profile, "FILE", "A step cost profile instead of the scenario's cost"},
      {"--rate", &flags.rate_per_s, "PER_SECOND", "Another arrival rate; the pattern stays", false, kRates},
      {"--requests", &flags.requests, "COUNT", "Requests at most", false, kCounts},
      {"--horizon", &flags.horizon, "DURATION", "The run is cut here, such as 10m"},
      {"--slo", &flags.slo, "RULE", "Threshold such as 'ttft.p99<500ms'; may repeat"},
      {"--seed", &flags.seed, "NUMBER", "Seed of the first replicate", false, kSeeds},
      {"--replicates", &flags.replicates, "COUNT", "Runs with consecutive seeds, for intervals", false,
       kRuns},
  };
  command.options.insert(command.options.end(), options.begin(), options.end());
  add_trace_flags(command, flags.read);
}

void check_workload(const Scenario& scenario) {
  const std::unique_ptr<WorkloadSource> source = make_source(scenario.workload);
  while (source->trace() != nullptr && source->next_time() != kNever) {
    const Offer offer = source->pop();
    source->on_end(offer.request.id, offer.request.arrival, Ending::finished);
  }
}

Scenario load_scenario(const ScenarioFlags& flags) {
  const TraceReadOptions read = read_options(flags);
  ScenarioDocument document = read_document(flags.scenario);
  std::vector<Override> overrides = environment_overrides(environment());
  if (!flags.preset.empty()) change_preset(document.content, flags.preset);
  for (const std::string& text : flags.set) overrides.push_back(parse_override(text));
  const auto add = [&](const char* flag, const char* path, Json value) {
    overrides.push_back({flag, path, std::move(value)});
  };
  if (flags.seed != kNotGiven) add("--seed", "seed", flags.seed);
  if (flags.replicates != kNotGiven) add("--replicates", "replicates", flags.replicates);
  if (!flags.horizon.empty()) add("--horizon", "horizon_s", seconds(horizon_of(flags.horizon)));
  if (!flags.profile.empty()) add("--profile", "cost", Json::object({{"profile", absolute(flags.profile)}}));
  Scenario scenario = resolve(document, overrides);
  for (const std::string& text : flags.slo) scenario.slo.push_back(parse_slo(text));
  if (!flags.trace.empty()) change_trace(scenario, flags, read);
  check_replicates(scenario, flags);
  if (flags.requests != kNotGiven) scenario.workload.requests = flags.requests;
  if (flags.rate_per_s != kNumberNotGiven) scenario = at_rate(scenario, flags.rate_per_s);
  return scenario;
}

}  // namespace foretoken

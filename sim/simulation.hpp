#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/core/observer.hpp"
#include "sim/metrics/report.hpp"
#include "sim/metrics/request_record.hpp"
#include "sim/scenario.hpp"
#include "sim/workload/warning.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// How a simulation is run. None of it changes results.
struct SimulateOptions {
  /// Replicates at the same time.
  std::int32_t threads = 1;
  /// Take identical decode steps together; off: the plain way, step by step.
  bool skip_ahead = true;
  /// Decode rows as aggregates; off: row by row.
  bool fast_paths = true;
  /// Receives every request of the first replicate; may be null.
  RequestSink* sink = nullptr;
  /// Watches the first replicate; may be null.
  Observer* observer = nullptr;
  /// Names of classes, tenants and sources, filled in as the first replicate meets them; may be null.
  GroupNames* names = nullptr;
  /// Plans with rows, as observers that hash plans need them.
  bool columns = false;
  /// Hashes the files that the scenario reads, for a report as JSON.
  bool hash_inputs = true;
  /// Ends the run early when set (Ctrl-C); may be null.
  const std::atomic<bool>* stop = nullptr;
};

/// The outcome of a simulation.
struct Simulation {
  Report report;
  /// What the report is printed with.
  ReportContext context;
  WorkloadCounts counts;
  std::vector<WorkloadWarning> workload_warnings;
  /// Cut short by `stop`: the report covers what was done until then.
  bool stopped = false;
};

/// Runs a scenario: all its replicates, each on one thread, merged into one report with intervals; a fixed
/// trace gets its intervals by the moving-block bootstrap. The same scenario gives the same report, byte for
/// byte.
Simulation simulate(const Scenario& scenario, const SimulateOptions& options = {});

/// The scenario's thresholds with their classes found among those of the workload; a trace is read for that
/// where a threshold names a class.
std::vector<Slo> resolved_slos(const Scenario& scenario);
/// One line that says what arrived: the trace with its format, or the generator.
std::string source_line(const Scenario& scenario, const WorkloadSource& source, const Collector& collector);
/// What a report of a run needs to know beside the collector, but for `source_line`, `names` and `inputs`.
/// Live runs pass no counters.
ReportContext report_context(const Scenario& scenario, const ScenarioCost& priced,
                             const CostCounters& counters, const Collector& collector);

/// A rate that a capacity search tried.
struct CapacityPoint {
  double rate_per_s = 0;
  /// Served over offered requests in the steady window.
  double served_share = 0;
};

/// How to search.
struct CapacityOptions {
  /// A rate holds when at least this share of the offered requests is served in the steady window.
  double served_share_min = 0.99;
  /// The search ends when the bracket is this narrow, relative to the rate.
  double tolerance = 0.005;
  /// Told of each rate tried; may be empty.
  std::function<void(const CapacityPoint&)> progress;
  const std::atomic<bool>* stop = nullptr;
};

/// The highest rate that holds.
struct CapacityResult {
  double rate_per_s = 0;
  double served_share = 0;
  /// The lowest rate found that does not hold.
  double rate_failed_per_s = 0;
  /// Every rate tried, in order.
  std::vector<CapacityPoint> points;
  /// Cut short: the bracket is wider than asked for.
  bool stopped = false;
};

/// Searches by bisection between rates found by doubling and halving. Arrivals keep their pattern: a trace is
/// scaled in time. A closed loop, whose rate is an outcome, is an InputError; an InfeasibleError says why no
/// rate at all is served.
CapacityResult find_capacity(const Scenario& scenario, const CapacityOptions& options = {});
/// The scenario at another rate.
Scenario at_rate(const Scenario& scenario, double rate_per_s);

/// SHA-256 of the files that the scenario reads, as the report lists them; null for standard input.
Json input_hashes(const Scenario& scenario);

}  // namespace foretoken

#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/live_executor.hpp"
#include "backend/run_recorder.hpp"
#include "backend/runtime.hpp"
#include "backend/wall_clock.hpp"
#include "backend/weights.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace foretoken {

/// A model on this machine's processors: threads and seeded weights, made once and used by many runs.
struct LiveModel {
  /// DeviceError when memory is short; `threads` 0 takes all usable processors. Once `stop` is set the
  /// weights stay as they are, and nothing may be run with them.
  LiveModel(const ModelShape& shape, ElementType type, int threads, std::uint64_t seed,
            const std::atomic<bool>* stop = nullptr);
  std::unique_ptr<Runtime<Cpu>> runtime;
  Weights weights;
};

/// A live run's outcome: the same report as a simulation's, and what replays need.
struct LiveRun {
  Report report;
  ReportContext context;
  RunRecorder recorder;
  /// How late the clock came back from its waits.
  WakeStatistics wakes;
  bool stopped = false;
};

/// What the executor of a live run holds, for sequences of at most `tokens_max` tokens.
LiveOptions live_options(const Scenario& scenario, std::int32_t tokens_max);

/// Runs a scenario in wall-clock time: the very scheduler and engine of a simulation, on kernels instead of
/// prices. `watcher` (a step log, say) and `stop` may be null. InputError where the scenario asks for what
/// the CPU backend has not.
LiveRun run_live(const Scenario& scenario, LiveModel& model, Observer* watcher,
                 const std::atomic<bool>* stop);

}  // namespace foretoken

#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "backend/decoder.hpp"
#include "backend/run_recorder.hpp"
#include "backend/wall_clock.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

namespace foretoken {

/// A live run's outcome: the same report as a simulation's, and what replays need.
struct LiveRun {
  Report report;
  ReportContext context;
  RunRecorder recorder;
  /// How late the clock came back from its waits.
  WakeStatistics wakes;
  bool stopped = false;
  /// Why the device went away, where it did: the report holds what was done before.
  std::string lost;
};

/// What the decoder of a live run holds, for sequences of at most `tokens_max` tokens.
DecoderOptions decoder_options(const Scenario& scenario, std::int32_t tokens_max);

/// Told the tokens of each answer when its request ends.
using AnswerSink = std::function<void(RequestId, std::span<const std::int32_t>)>;

/// Runs a scenario in wall-clock time: the very scheduler and engine of a simulation, on kernels instead of
/// prices. `watcher` (a step log, say), `stop` and `answers` may be null. InputError where the scenario asks
/// for what live runs have not.
LiveRun run_live(const Scenario& scenario, DeviceModel& model, Observer* watcher,
                 const std::atomic<bool>* stop, const AnswerSink& answers = nullptr);

}  // namespace foretoken

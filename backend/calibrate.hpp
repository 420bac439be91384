#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "backend/live_run.hpp"
#include "models/profile.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

/// What to sweep. Nothing outside these bounds is measured, so they are those of the runs that will be
/// priced.
struct CalibrationOptions {
  std::int32_t sequences_max = 32;
  std::int32_t batch_tokens_max = 512;
  std::int32_t tokens_max = 1024;
  std::int32_t block_tokens = 16;
  /// 0 or 1, as the runs that will be priced.
  std::int32_t depth = 0;
  /// Prompts are padded and ended sequences decode along; mixed and ragged batches do not occur then.
  bool padded = false;
  /// Interleaved passes over all shapes, each in an order of its own.
  std::int32_t passes = 9;
  /// No shape is begun later than this, once all have been timed.
  double seconds_max = 50;
  std::uint64_t seed = 1;
  std::function<void(std::string_view)> progress;
  const std::atomic<bool>* stop = nullptr;
};

/// Steps timed through the live executor, from the end of the previous step to the end of this one.
struct Calibration {
  std::vector<Sample> samples;
  std::vector<TransferSample> transfers;
  /// Passes made, the last one perhaps in part.
  double passes = 0;
};

/// The sweep that covers what a scenario's policy may plan, up to 1,024 tokens.
CalibrationOptions calibration_options(const Scenario& scenario);

/// What the executor of a sweep holds.
DecoderOptions sweep_options(const CalibrationOptions& options);

/// How much slower this machine is now than it was when the profile was measured: mean over half the shapes
/// of the sweep, each timed once, of its time over its calibrated mean, less 1. None when the profile has
/// none of them, or when stopped.
std::optional<double> machine_drift(DeviceModel& model, const Profile& profile,
                                    const CalibrationOptions& options);

/// Times prompts by chunk and context, decodes by batch and context, mixed and ragged batches.
Calibration calibrate(DeviceModel& model, const CalibrationOptions& options);

}  // namespace foretoken

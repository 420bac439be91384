#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "backend/live_run.hpp"
#include "models/profile.hpp"

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
  /// Interleaved passes over all shapes, each in an order of its own.
  std::int32_t passes = 9;
  /// No pass is begun that would not end in time, once three are done.
  double seconds_max = 50;
  std::uint64_t seed = 1;
  std::function<void(std::string_view)> progress;
  const std::atomic<bool>* stop = nullptr;
};

/// Steps timed through the live executor, from the end of the previous step to the end of this one.
struct Calibration {
  std::vector<Sample> samples;
  std::vector<TransferSample> transfers;
};

/// Times prompts by chunk and context, decodes by batch and context, mixed and ragged batches.
Calibration calibrate(LiveModel& model, const CalibrationOptions& options);

}  // namespace foretoken

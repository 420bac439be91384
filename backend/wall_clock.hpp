#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "sim/core/executor.hpp"

namespace foretoken {

/// How late a wall clock came back from its waits.
struct WakeStatistics {
  std::int64_t waits = 0;
  Duration late_sum{};
  Duration late_max{};
};

/// Wall time since the start of a run. Waits sleep until shortly before the time and then poll, because a
/// sleeping thread wakes up 50 microseconds late or more.
class WallClock final : public Clock {
 public:
  /// Starts now. Waits end early once `*stop` is true (Ctrl-C); may be null.
  explicit WallClock(const std::atomic<bool>* stop = nullptr);

  /// Time 0 is now.
  void restart();
  /// Time since the start.
  Time now() const;
  void wait_until(Time t) override;
  /// Of all waits that had to wait.
  const WakeStatistics& wakes() const { return wakes_; }

 private:
  const std::atomic<bool>* stop_;
  std::chrono::steady_clock::time_point origin_;
  WakeStatistics wakes_;
};

}  // namespace foretoken

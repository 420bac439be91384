#include "backend/wall_clock.hpp"

#include <algorithm>
#include <thread>

namespace foretoken {
namespace {

/// How long before the time a sleep ends and polling begins; sleepers wake up 60-120 us late on an idle
/// machine.
constexpr std::chrono::microseconds kPollAhead{200};
/// Longest single sleep, so that a stop is noticed.
constexpr std::chrono::milliseconds kSleepMax{20};

}  // namespace

WallClock::WallClock(const std::atomic<bool>* stop)
    : stop_(stop), origin_(std::chrono::steady_clock::now()) {}

void WallClock::restart() {
  origin_ = std::chrono::steady_clock::now();
  wakes_ = {};
}

Time WallClock::now() const {
  return Time{std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - origin_)};
}

void WallClock::wait_until(Time t) {
  if (now() >= t) return;
  for (;;) {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(t - now());
    if (left <= kPollAhead) break;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left - kPollAhead, kSleepMax));
  }
  Time woken = now();
  while (woken < t) woken = now();
  ++wakes_.waits;
  wakes_.late_sum += woken - t;
  wakes_.late_max = std::max(wakes_.late_max, woken - t);
}

}  // namespace foretoken

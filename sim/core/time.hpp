#pragma once
#include <chrono>
#include <cstdint>

namespace foretoken {

/// Engine time in integer picoseconds: 64 bits span 106 days, and cost coefficients of a few hundred
/// picoseconds per token are still integers, so that sums close exactly. The clock has no now(): the core
/// learns the time from its arguments alone.
struct EngineClock {
  using rep = std::int64_t;
  using period = std::pico;
  using duration = std::chrono::duration<rep, period>;
  using time_point = std::chrono::time_point<EngineClock>;
  static constexpr bool is_steady = true;
};
using Duration = EngineClock::duration;
using Time = EngineClock::time_point;

/// Later than every event.
inline constexpr Time kNever = Time::max();
/// Longer than every wait.
inline constexpr Duration kForever = Duration::max();

/// Seconds as a double, for reports only.
constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
/// Picoseconds since the start of the run.
constexpr std::int64_t picoseconds(Time t) { return t.time_since_epoch().count(); }
/// `t + d`, or kNever where either is without end.
constexpr Time after(Time t, Duration d) { return t == kNever || d == kForever ? kNever : t + d; }

}  // namespace foretoken

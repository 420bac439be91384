#pragma once
#include <cstdint>
#include <vector>

#include "sim/core/step.hpp"
#include "sim/core/time.hpp"

namespace foretoken {

/// One stretch of a run. Time integrals are values times picoseconds, as doubles.
struct SeriesBucket {
  double kv_held_ps = 0;
  double resident_ps = 0;
  double waiting_ps = 0;
  std::int64_t busy_ps = 0;
  std::int64_t kv_held_max = 0;
  std::int32_t resident_max = 0;
  std::int32_t waiting_max = 0;
  std::int64_t arrivals = 0;
  std::int64_t finished = 0;
  std::int64_t ended = 0;  ///< Finished, cancelled or refused.
  std::int64_t preemptions = 0;
  std::int64_t emitted_tokens = 0;
  void merge(const SeriesBucket& other);
};

/// What a step record adds to the series.
struct SeriesSample {
  Time begin{};
  Duration first{};
  Duration growth{};
  std::int64_t repeats = 1;
  std::int64_t emitted_per_repeat = 0;
  std::int64_t kv_held = 0;
  std::int32_t resident = 0;
  std::int32_t waiting = 0;
};

/// A run over time in a bounded number of equal buckets: when time outgrows them, neighbours merge and the
/// width doubles.
class TimeSeries {
 public:
  /// `buckets_max` is even. The width starts at one microsecond.
  explicit TimeSeries(std::int64_t buckets_max = 512);
  /// Spreads a record over the buckets it covers; a repeat's tokens go to the bucket in which it ends.
  void add(const SeriesSample& sample);
  /// The bucket of an instant, for the event counts.
  SeriesBucket& at(Time t) {
    const std::int64_t ps = picoseconds(t);
    return ps >= begin_ps_ && ps < end_ps_ ? *current_ : move_to(ps);
  }
  std::int64_t width_ps() const { return width_ps_; }
  /// From time 0 on; the last one may be partly filled.
  const std::vector<SeriesBucket>& buckets() const { return buckets_; }

 private:
  SeriesBucket& move_to(std::int64_t ps);
  void widen();

  std::int64_t buckets_max_;
  std::int64_t width_ps_ = 1'000'000;
  std::vector<SeriesBucket> buckets_;
  SeriesBucket* current_ = nullptr;
  std::int64_t begin_ps_ = 0;
  std::int64_t end_ps_ = 0;
};

}  // namespace foretoken

#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/workload/workload.hpp"
#include "tests/support/stage.hpp"

namespace foretoken::theory {

/// One request's way through the system.
struct Visit {
  Time arrival{};
  Time admitted = kNever;  ///< First admission.
  Time end = kNever;
  std::int32_t prompt_tokens = 0;
  std::int32_t output_tokens = 0;
  std::uint16_t slo_class = 0;

  std::int64_t wait() const { return (admitted - arrival).count(); }
  std::int64_t sojourn() const { return (end - arrival).count(); }
};

/// A stretch of time in which steps follow each other without a gap.
struct BusyPeriod {
  Time begin{};
  Time end{};
  friend bool operator==(const BusyPeriod&, const BusyPeriod&) = default;
};

/// The classes that a run may tell apart.
inline constexpr std::size_t kClasses = 4;

/// What queueing theory speaks of, measured on a run of the real engine.
struct QueueRun {
  std::vector<Visit> visits;  ///< By request id.
  std::vector<BusyPeriod> busy_periods;
  Duration busy{};  ///< Sum of the durations of all steps.
  Time end{};
  bool drained = false;
  /// Integral of the number of requests in the system, as the scheduler counts them.
  std::int64_t alive_ps = 0;
  /// The same by class, counted from the events.
  std::array<std::int64_t, kClasses> class_ps{};
  /// How many arrivals found exactly that many in the system, and how many departures left them behind.
  std::vector<std::int64_t> found;
  std::vector<std::int64_t> left_behind;
  /// Picoseconds with exactly that many in the system.
  std::vector<std::int64_t> with_exactly;
};

/// Runs the policy, capacity and prices of `setup` on what `source` offers.
QueueRun run_queue(const laws::Setup& setup, Source& source);
/// The same on the items of the setup.
QueueRun run_queue(const laws::Setup& setup);

/// One sequence at a time, first come, first served, with memory for everybody and any whole prompt in one
/// step.
laws::Setup single_server();
/// What one request costs a server that has nobody else: the prefill and one decode step per further token.
std::int64_t service_ps(const laws::Prices& prices, std::int32_t prompt_tokens, std::int32_t output_tokens);
/// Poisson arrivals at a rate per second.
WorkloadSpec poisson(double rate_per_s, std::int64_t requests, std::uint64_t seed);
/// The offers of a workload as items of a setup, each with an exact bound on its answer.
std::vector<laws::Item> items_of(const WorkloadSpec& spec);

/// Mean and half width of a confidence interval at 99.9 % from independent replicates (Student's t).
struct Interval {
  double mean = 0;
  double half = 0;
  bool holds(double value) const { return value >= mean - half && value <= mean + half; }
};
/// From at least 20 replicates; the quantile is that of 19 degrees of freedom, which is wide for more.
Interval interval_of(const std::vector<double>& replicates);

/// Arrival, then service in turn: what a server with one place at a time must do. `extra(i)` is how long it
/// is taken after the end of request i.
void require_lindley(const laws::Setup& setup, const QueueRun& run,
                     const std::function<std::int64_t(std::size_t)>& extra = {});
/// The integral of the number in the system is the sum of the times in it, in all and by class.
void require_little(const QueueRun& run);

inline constexpr std::size_t kReplicates = 20;
/// Requests of a replicate that are not counted, and those that are.
inline constexpr std::int64_t kWarmUp = 2000, kCounted = 12000;
/// One at a time, with round prices: whole nanoseconds between arrivals are as good as real numbers.
laws::Setup millisecond_server();
/// Mean wait of the counted requests, in picoseconds.
double mean_wait(const QueueRun& run);
/// Mean waits of replicates with Poisson arrivals, 1000 a second times the load, and prompts of 300 tokens:
/// with answers of 3, a millisecond of service each.
std::vector<double> deterministic_waits(const laws::Setup& setup, double load, const LengthSpec& answers);
/// Holds the interval to the value and to being narrow enough to tell.
void require_mean(const Interval& interval, double expected, double relative_width_max);

}  // namespace foretoken::theory

#include "sim/workload/arrivals.hpp"

#include <cmath>

#include "sim/base/check.hpp"
#include "sim/workload/random_streams.hpp"

namespace foretoken {
namespace {

// Half of what 64 bits of picoseconds hold: later arrivals end the process.
constexpr double kSecondsMax = 4.6e6;

}  // namespace

ArrivalProcess::ArrivalProcess(const ArrivalSpec& spec, std::uint64_t seed)
    : spec_(spec),
      gaps_(seed, streams::kGaps),
      phases_(seed, streams::kPhases),
      gap_mean_s_(1.0 / spec.rate_per_s),
      shape_(1.0 / (spec.cv * spec.cv)) {
  FT_CHECK(spec.kind == ArrivalKind::poisson || spec.kind == ArrivalKind::gamma ||
           spec.kind == ArrivalKind::on_off);
  if (spec.kind == ArrivalKind::on_off) phase_left_s_ = seconds(spec.on) * phases_.exponential(phase_++);
}

Time ArrivalProcess::next() {
  const double gap_s = gap_seconds();
  ++count_;
  if (last_ == kNever || !(gap_s < kSecondsMax)) return last_ = kNever;
  const Duration gap(std::llround(gap_s * 1e9) * 1000);
  if (last_ > Time(Duration(std::int64_t{9'200'000} * 1'000'000'000'000) - gap)) return last_ = kNever;
  return last_ += gap;
}

double ArrivalProcess::gap_seconds() {
  switch (spec_.kind) {
    // Gamma gaps of mean 1/rate and coefficient of variation cv have shape 1/cv^2. The sum is left to chance:
    // rescaling it to N/rate, as some load generators do, takes away the natural variance of the rate.
    case ArrivalKind::gamma: return gap_mean_s_ * gaps_.gamma(count_, shape_);
    case ArrivalKind::on_off: return on_off_gap_seconds();
    default: return gap_mean_s_ * gaps_.exponential(count_);
  }
}

double ArrivalProcess::on_off_gap_seconds() {
  // A unit exponential is used up at the phase's rate; what a phase leaves of it goes into the next one.
  double left = gaps_.exponential(count_);
  double gap_s = 0.0;
  for (;;) {
    const double rate = is_on_ ? spec_.on_rate_per_s : spec_.off_rate_per_s;
    if (left <= rate * phase_left_s_) {
      phase_left_s_ -= left / rate;
      return gap_s + left / rate;
    }
    left -= rate * phase_left_s_;
    gap_s += phase_left_s_;
    if (gap_s > kSecondsMax) return gap_s;
    is_on_ = !is_on_;
    phase_left_s_ = seconds(is_on_ ? spec_.on : spec_.off) * phases_.exponential(phase_++);
  }
}

}  // namespace foretoken

#pragma once
#include <cstdint>

#include "sim/core/random.hpp"
#include "sim/core/time.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// Arrival times of an open-loop process, one after another: `poisson`, `gamma` or `on_off`. Times are whole
/// nanoseconds, as traces have them, so that a synthesised trace replays exactly.
class ArrivalProcess {
 public:
  ArrivalProcess(const ArrivalSpec& spec, std::uint64_t seed);
  /// Time of the next arrival, not before the last; kNever beyond engine time.
  Time next();

 private:
  double gap_seconds();
  double on_off_gap_seconds();

  ArrivalSpec spec_;
  RandomStream gaps_;
  RandomStream phases_;
  double gap_mean_s_;
  double shape_;
  std::uint64_t count_ = 0;
  Time last_{};
  bool is_on_ = true;
  double phase_left_s_ = 0.0;
  std::uint64_t phase_ = 0;
};

}  // namespace foretoken

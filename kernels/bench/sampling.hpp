#pragma once
#include <functional>
#include <vector>

namespace foretoken::bench {

/// Seconds on a clock that never goes back, from an arbitrary beginning.
double seconds_now();

/// The 10th percentile (nearest rank) of `times`, which must not be empty: what the machine does when nobody
/// disturbs it, without resting on a single lucky reading.
double tenth_percentile(std::vector<double> times);

/// Something that can be timed: runs once and returns the seconds it took.
using Timed = std::function<double()>;

/// Runs all of `timed` in turn, round after round, for at least `rounds_min` rounds and about `seconds`,
/// after one round that is thrown away; returns the 10th percentile of each. What is compared is thus
/// measured under the same weather.
std::vector<double> interleaved_seconds(const std::vector<Timed>& timed, int rounds_min, double seconds);

}  // namespace foretoken::bench

#include "kernels/bench/sampling.hpp"

#include <algorithm>
#include <chrono>

namespace foretoken::bench {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double tenth_percentile(std::vector<double> times) {
  const auto rank = static_cast<std::ptrdiff_t>((times.size() - 1) / 10);
  std::nth_element(times.begin(), times.begin() + rank, times.end());
  return times[static_cast<std::size_t>(rank)];
}

std::vector<double> interleaved_seconds(const std::vector<Timed>& timed, int rounds_min, double seconds) {
  std::vector<std::vector<double>> times(timed.size());
  for (const Timed& one : timed) one();
  const double begin = seconds_now();
  for (int round = 0; round < rounds_min || seconds_now() - begin < seconds; ++round)
    for (std::size_t i = 0; i < timed.size(); ++i) times[i].push_back(timed[i]());
  std::vector<double> result;
  for (std::vector<double>& of_one : times) result.push_back(tenth_percentile(std::move(of_one)));
  return result;
}

}  // namespace foretoken::bench

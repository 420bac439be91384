#include "sim/metrics/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/metrics/quantiles.hpp"
#include "tests/catch.hpp"

using namespace foretoken;

TEST_CASE("quantiles of Student's t are those of the tables") {
  CHECK(student_t_quantile(0.975, 1) == Approx(12.7062).epsilon(1e-5));
  CHECK(student_t_quantile(0.975, 4) == Approx(2.77645).epsilon(1e-5));
  CHECK(student_t_quantile(0.975, 30) == Approx(2.04227).epsilon(1e-5));
  CHECK(student_t_quantile(0.975, 1000000) == Approx(1.95996).epsilon(1e-4));
  CHECK(student_t_quantile(0.025, 4) == Approx(-2.77645).epsilon(1e-5));
}

TEST_CASE("replicates give their mean and t half-width") {
  const std::vector<double> values{1, 2, 3, 4, 5};
  const ReplicateMean mean = replicate_mean(values);
  CHECK(mean.mean == Approx(3));
  CHECK(mean.half_width == Approx(2.77645 * std::sqrt(2.5 / 5)).epsilon(1e-5));
  CHECK(std::isinf(replicate_mean(std::vector<double>{7}).half_width));
}

TEST_CASE("bootstrap intervals cover the truth about as often as they say", "[theory]") {
  int covered_mean = 0;
  int covered_median = 0;
  constexpr int runs = 200;
  for (int run = 0; run < runs; ++run) {
    const RandomStream stream(static_cast<std::uint64_t>(run), 5);
    std::vector<std::int64_t> values;
    for (std::uint64_t i = 0; i < 600; ++i)
      values.push_back(static_cast<std::int64_t>(1e9 * stream.exponential(i)));
    BootstrapOptions options;
    options.resamples = 200;
    options.seed = static_cast<std::uint64_t>(run);
    const auto mean = bootstrap_interval(values, std::nullopt, options);
    const auto median = bootstrap_interval(values, 0.5, options);
    covered_mean += mean->low <= 1e9 && 1e9 <= mean->high ? 1 : 0;
    const double truth = 1e9 * std::log(2.0);
    covered_median += median->low <= truth && truth <= median->high ? 1 : 0;
  }
  CHECK(covered_mean > runs * 0.88);
  CHECK(covered_median > runs * 0.88);
}

TEST_CASE("a resample's quantile is that of its drawn values, however it is found", "[property]") {
  // A block as long as the sample leaves one resample only, whose quantile is the sample's.
  const RandomStream stream(3, 9);
  std::vector<std::int64_t> values;
  for (std::uint64_t i = 0; i < 500; ++i) values.push_back(stream.integer(i, 0, 50));
  std::vector<std::int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  BootstrapOptions options;
  options.block = 500;
  for (const double q : {0.01, 0.5, 0.9, 0.99}) {
    const auto interval = bootstrap_interval(values, q, options);
    CHECK(interval->low == sorted_quantile(sorted, q));
    CHECK(interval->high == interval->low);
    CHECK(interval->value == interval->low);
  }
  CHECK_FALSE(bootstrap_interval(std::span(values).first(19), 0.5, options).has_value());
}

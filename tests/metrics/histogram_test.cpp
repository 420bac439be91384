#include "sim/metrics/histogram.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "sim/metrics/quantiles.hpp"
#include "tests/catch.hpp"
#include "tests/metrics/fake_run.hpp"
#include "tests/support/part_laws.hpp"

using namespace foretoken;
using foretoken::test::Draw;

TEST_CASE("a histogram's quantiles are within its stated error and its mean is exact", "[property]") {
  CHECK(kHistogramError <= 0.005);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(seed);
    Histogram histogram;
    std::vector<std::int64_t> values;
    Wide sum = 0;
    for (std::int64_t n = draw.between(1, 500); n > 0; --n) {
      values.push_back(draw.between(0, std::int64_t{1} << draw.between(1, 31)) << draw.between(0, 30));
      histogram.add(values.back());
      sum += values.back();
    }
    std::sort(values.begin(), values.end());
    CHECK(histogram.mean_ps() == to_double(sum) / static_cast<double>(values.size()));
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0})
      CHECK(histogram.quantile_ps(q) ==
            Approx(sorted_quantile(values, q)).epsilon(kHistogramError).margin(0.5));
  }
}

TEST_CASE("a progression counts as its loop does", "[property]") {
  laws::for_each_seed(500, [](laws::Draw& draw) { laws::progressions_are_loops<Histogram>(draw); });
}

TEST_CASE("merged histograms are the histogram of all samples, unlike a percentile of percentiles") {
  // Two replicas, one fast and busy, one slow and idle: averaging their p99 says 505, the truth is 10.
  Histogram fast, slow, both;
  fast.add(10, 9999);
  slow.add(1000, 1);
  both.merge(fast);
  both.merge(slow);
  CHECK(both.count() == 10000);
  CHECK(both.quantile_ps(0.99) == 10);
  CHECK((fast.quantile_ps(0.99) + slow.quantile_ps(0.99)) / 2 == 505);
  CHECK(both.max_ps() == 1000);
}

TEST_CASE("a histogram takes every value of 63 bits") {
  Histogram histogram;
  histogram.add(0);
  histogram.add(INT64_MAX);
  CHECK(histogram.count_up_to(0) == 1);
  CHECK(histogram.count_up_to(INT64_MAX) == 2);
  CHECK(histogram.quantile_ps(1.0) == static_cast<double>(INT64_MAX));
}

TEST_CASE("exact figures are those of the sorted sample", "[property]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Draw draw(seed);
    std::vector<std::int64_t> values;
    // Few distinct values make ties, many make spread.
    const std::int64_t most = draw.chance(0.3) ? 3 : std::int64_t{1} << draw.between(1, 31);
    for (std::int64_t n = draw.between(1, 3000); n > 0; --n) values.push_back(draw.between(0, most));
    const Summary summary = exact_summary(values);
    std::sort(values.begin(), values.end());
    CHECK(summary.count == static_cast<std::int64_t>(values.size()));
    for (std::size_t s = 1; s < kStatistics; ++s) {
      const double q = *statistic_quantile(static_cast<Statistic>(s));
      CHECK(summary.value_ps[s] == sorted_quantile(values, q));
      std::vector<std::int64_t> reversed(values.rbegin(), values.rend());
      CHECK(quantile_of(reversed, q) == sorted_quantile(values, q));
    }
  }
}

TEST_CASE("figures of a column are those of its parts, of marked rows and without the rows that have none",
          "[property]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Draw draw(seed);
    const std::int64_t most = draw.chance(0.3) ? 100 : std::int64_t{1} << draw.between(1, 62);
    std::vector<std::int64_t> values;
    std::vector<std::int64_t> marked;
    std::vector<std::int64_t> column;
    std::vector<std::uint8_t> marks;
    for (std::int64_t n = draw.between(0, 2000); n > 0; --n) {
      column.push_back(draw.chance(0.1) ? -1 : draw.between(0, most));
      marks.push_back(draw.chance(0.4) ? 1 : 0);
      if (column.back() < 0) continue;
      values.push_back(column.back());
      if (marks.back() != 0) marked.push_back(column.back());
    }
    const std::span<const std::int64_t> all(column);
    const auto half = static_cast<std::size_t>(draw.between(0, std::ssize(column)));
    const MarkedSummaries summaries = exact_summaries({{all.first(half), all.subspan(half)}, marks});
    CHECK(summaries.all.value_ps == exact_summary(values).value_ps);
    CHECK(summaries.marked.value_ps == exact_summary(marked).value_ps);
    CHECK(summaries.all.count == std::ssize(values));
    CHECK(summaries.marked.count == std::ssize(marked));
    CHECK(summaries.all.excluded == std::ssize(column) - std::ssize(values));
    CHECK(summaries.marked.excluded == std::count(marks.begin(), marks.end(), 1) - std::ssize(marked));
  }
}

TEST_CASE("quantiles interpolate as numpy does") {
  // numpy.percentile([10, 20, 30, 40], [50, 90, 99]) = 25, 37, 39.7
  const std::vector<std::int64_t> values{40, 10, 30, 20};
  const Summary summary = exact_summary(values);
  CHECK(summary[Statistic::mean] == 25);
  CHECK(summary[Statistic::p50] == 25);
  CHECK(summary[Statistic::p90] == Approx(37));
  CHECK(summary[Statistic::p99] == Approx(39.7));
  CHECK(summary[Statistic::max] == 40);
  CHECK_FALSE(summary.has(Statistic::p99));
}

#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// What is measured. All but `gap` have one value per finished request; `gap` pools the token gaps of all
/// requests.
enum class Metric : std::uint8_t {
  ttft,
  tpot,
  ntpot,
  e2e,
  queue_time,
  preempted_time,
  stall_max,
  prefill_time,
  decode_time,
  stalled_time,
  gap,
  count_
};
inline constexpr std::size_t kMetrics = static_cast<std::size_t>(Metric::count_);
/// Metrics with one value per request: every one before `gap`.
inline constexpr std::size_t kRequestMetrics = static_cast<std::size_t>(Metric::gap);

/// The metric as an index into a column.
constexpr std::size_t index(Metric m) { return static_cast<std::size_t>(m); }
/// "ttft", "tpot" and so on, as written in thresholds and reports.
std::string_view metric_name(Metric metric);
/// The metric of that name; nothing when there is none.
std::optional<Metric> find_metric(std::string_view name);

/// One figure drawn from a sample.
enum class Statistic : std::uint8_t { mean, p50, p90, p95, p99, p999, max, count_ };
inline constexpr std::size_t kStatistics = static_cast<std::size_t>(Statistic::count_);
/// "mean", "p50", "p99.9" and so on.
std::string_view statistic_name(Statistic statistic);
/// Quantile of the statistic in [0, 1]; 1 for the greatest, nothing for the mean.
std::optional<double> statistic_quantile(Statistic statistic);
/// Samples below which a quantile says little: 1,000 for p99, 10,000 for p99.9, 1 for the rest.
std::int64_t samples_needed(Statistic statistic);

/// A sample in figures, picoseconds. Quantiles interpolate linearly between order statistics (numpy's
/// default).
struct Summary {
  std::int64_t count = 0;
  /// Finished requests for which the metric is not defined (tpot of a single token) and which are therefore
  /// not in `count`.
  std::int64_t excluded = 0;
  /// False when the figures come from a histogram whose relative error is at most `kHistogramError`.
  bool exact = true;
  /// By Statistic.
  std::array<double, kStatistics> value_ps{};
  /// Half-widths of the 95 % intervals over replicated seeds, by Statistic; zero where there are none.
  std::array<double, kStatistics> half_width_ps{};
  /// The figure.
  double operator[](Statistic s) const { return value_ps[static_cast<std::size_t>(s)]; }
  /// Whether there are enough samples for the figure to be printed.
  bool has(Statistic s) const { return count >= samples_needed(s); }
};

/// Names of the classes, tenants and sources that requests carry as indices.
struct GroupNames {
  std::vector<std::string> classes;
  std::vector<std::string> tenants;
  std::vector<std::string> sources;
};

/// What `foretoken help metrics` prints: every metric with its definition, and what other tools call it.
std::string metric_definitions();

}  // namespace foretoken

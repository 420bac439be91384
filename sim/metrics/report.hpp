#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/metrics/collector.hpp"
#include "sim/metrics/intervals.hpp"
#include "sim/metrics/metric.hpp"
#include "sim/metrics/slo.hpp"
#include "sim/metrics/totals.hpp"

namespace foretoken {

/// Version of the JSON document that `report_json` writes.
inline constexpr std::int64_t kReportSchemaVersion = 1;

/// What makes a result doubtful.
enum class ReportWarning : std::uint8_t {
  few_samples,            ///< Too few for the tail percentiles that were asked for.
  not_stationary,         ///< The queue grew all through the steady window.
  tied_arrivals,          ///< Many arrivals share a time stamp.
  no_prefix_data,         ///< A prefix cache, but no request carries prefix hashes.
  cost_out_of_range,      ///< Steps were priced outside the range of the profile.
  truncated_requests,     ///< Answers were cut by max_new_tokens or the context.
  refused_requests,       ///< The door refused requests that can never be served.
  unfinished_requests,    ///< Requests were still alive at the end; latencies do not know them.
  preemption_tax,         ///< Much was computed twice.
  histogram_percentiles,  ///< Percentiles come from histograms.
  nothing_finished,       ///< No request finished.
  late_arrivals,          ///< A live run saw arrivals late.
  count_
};
/// "few-samples" and so on, as in JSON documents.
std::string_view warning_name(ReportWarning warning);
/// A warning with its figures, and what to do about it.
struct WarningText {
  ReportWarning kind{};
  std::string text;
  std::string advice;
};

/// What the caller knows about the run and the collector does not.
struct ReportContext {
  std::string tool_version;
  std::string command = "simulate";
  Json config;  ///< Resolved configuration.
  Json inputs;  ///< Array of {path, sha256, ...}.
  std::uint64_t seed = 0;
  std::string source_line;  ///< First line of the table: the trace or the generator.
  std::string evidence;     ///< Grade and name of the cost profile, or the backend of a live run.
  GroupNames names;
  std::int32_t sequences_max = 0;  ///< 0: not printed.
  std::int32_t batch_tokens_max = 0;
  bool prefix_cache = false;
  bool live = false;
  /// Totals from which MFU and MBU follow, and what the hardware could do; 0 where not known.
  double flops_total = 0;
  double bytes_total = 0;
  double peak_flops_per_s = 0;
  double bandwidth_bytes_per_s = 0;
  std::int64_t cost_queries = 0;
  std::int64_t cost_out_of_range = 0;
  /// Intervals of thresholds on one run; off for runs that are replicated.
  bool bootstrap = true;
  BootstrapOptions bootstrap_options;
};

/// Part of a run's requests, over some stretch of time.
struct GroupReport {
  std::string name;
  RequestTotals totals;
  /// By Metric; a summary with count 0 where there is nothing (or, for gaps, no split).
  std::array<Summary, kMetrics> metrics{};
  std::optional<double> goodput;  ///< Good over offered; nothing when nothing was offered.
  double offered_per_s = 0;
  double finished_per_s = 0;
  double delivered_tokens_per_s = 0;
  /// Half-widths of the 95 % intervals over replicated seeds; zero where there are none.
  double goodput_half_width = 0;
  double finished_half_width_per_s = 0;
  double tokens_half_width_per_s = 0;
};

/// The steady part of a run: arrivals in its window, and what ended in it.
struct SteadyReport {
  std::int64_t begin_ps = 0;
  std::int64_t end_ps = 0;
  std::int64_t offered = 0;   ///< Arrivals in the window.
  std::int64_t finished = 0;  ///< Finished in the window, whenever they came.
  std::int64_t ended = 0;     ///< Likewise, in whatever way.
  double offered_per_s = 0;
  double finished_per_s = 0;
  double emitted_tokens_per_s = 0;
  /// Of the finished requests that arrived in the window; empty beyond exact percentiles.
  std::array<Summary, kRequestMetrics> metrics{};
  std::optional<double> goodput;
  bool is_stationary = true;
  /// Finished over offered: 0.99 and more is what a capacity search asks for. Nothing when nothing was
  /// offered.
  std::optional<double> served_share;
};

/// A report: plain data, in the units of its parts.
struct Report {
  GroupReport whole;
  SteadyReport steady;
  std::vector<GroupReport> classes;
  std::vector<GroupReport> tenants;
  std::vector<GroupReport> sources;
  std::vector<SloResult> slos;
  std::vector<WarningText> warnings;
  std::string hint;  ///< What to try; empty: nothing to say.
  WorkTotals work;
  LimitTotals limits;
  StateTotals state;
  std::int64_t series_width_ps = 0;
  std::vector<SeriesBucket> series;
  std::int64_t begin_ps = 0;  ///< First arrival.
  std::int64_t end_ps = 0;    ///< End of the run.
  std::int64_t steps = 0;
  std::int64_t replicates = 1;
  double busy_share = 0;
  std::optional<double> mfu;
  std::optional<double> mbu;
  bool exact = true;
  bool all_pass() const;
};

/// Draws everything from a collector whose run is finished. The steady window leaves out the first and last
/// tenth of the time between first and last arrival, moved inwards to the borders of the series' buckets.
Report make_report(const Collector& collector, const ReportContext& context);
/// Replicates with independent seeds as one report: figures are means with t intervals, counts are sums,
/// thresholds are judged on the means. Class, tenant and source names must agree.
Report merge_replicates(const std::vector<Report>& reports, const ReportContext& context);

/// One JSON document: schema_version, tool_version, command, config, inputs, seed, result. Nothing in it
/// depends on the machine or the time of day.
Json report_json(const Report& report, const ReportContext& context);
/// How a table is printed.
struct TableOptions {
  std::int32_t columns = 100;  ///< At most; columns of the table are dropped, never wrapped.
  bool color = false;
};
/// The table of `foretoken simulate` and `live`, thresholds first.
std::string report_table(const Report& report, const ReportContext& context, const TableOptions& options);
/// The same figures as Markdown tables.
std::string report_markdown(const Report& report, const ReportContext& context);
/// One line per scope and metric: scope,name,metric,unit,count,excluded,mean,p50,...
std::string report_csv(const Report& report);
/// Warnings for stderr, one line each.
std::string warnings_text(const Report& report);

}  // namespace foretoken

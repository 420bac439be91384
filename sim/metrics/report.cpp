#include "sim/metrics/report.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/metrics/quantiles.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

/// Which group of a dimension a cell belongs to.
using Dimension = std::uint16_t GroupCell::*;

/// What histograms know: always the gap, and everything in histogram mode.
Summary from_histogram(const Collector& collector, Metric metric, const std::vector<char>& selected,
                       std::int64_t finished) {
  Summary summary = collector.merged(metric, selected).summary();
  if (metric != Metric::gap && summary.count > 0) summary.excluded = finished - summary.count;
  return summary;
}

void set_rates(GroupReport& group, double duration_s) {
  const RequestTotals& totals = group.totals;
  if (totals.offered > 0)
    group.goodput = static_cast<double>(totals.good) / static_cast<double>(totals.offered);
  if (duration_s <= 0) return;
  group.offered_per_s = static_cast<double>(totals.offered) / duration_s;
  group.finished_per_s = static_cast<double>(totals.finished) / duration_s;
  group.delivered_tokens_per_s = static_cast<double>(totals.delivered_tokens) / duration_s;
}

/// All of a group but what the table of requests says.
GroupReport report_group(const Collector& collector, const std::vector<char>& selected, double duration_s) {
  GroupReport group;
  for (std::size_t c = 0; c < collector.cells().size(); ++c)
    if (selected.empty() || selected[c] != 0) group.totals.add(collector.cells()[c].totals);
  for (std::size_t m = collector.exact() ? kRequestMetrics : 0; m < kMetrics; ++m)
    group.metrics[m] = from_histogram(collector, static_cast<Metric>(m), selected, group.totals.finished);
  set_rates(group, duration_s);
  return group;
}

GroupReport report_selected(const Collector& collector, const std::vector<char>& selected,
                            double duration_s) {
  GroupReport group = report_group(collector, selected, duration_s);
  if (!collector.exact()) return group;
  const std::vector<std::uint8_t> marks = collector.table().mark_cells(selected);
  for (std::size_t m = 0; m < kRequestMetrics; ++m)
    group.metrics[m] = exact_summaries(collector.table().column(static_cast<Metric>(m), marks)).marked;
  return group;
}

std::vector<GroupReport> report_dimension(const Collector& collector, Dimension dimension,
                                          const std::vector<std::string>& names, const GroupReport& whole,
                                          double duration_s) {
  std::vector<std::uint16_t> groups;
  for (const GroupCell& cell : collector.cells()) groups.push_back(cell.*dimension);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  std::vector<GroupReport> reports;
  for (const std::uint16_t group : groups) {
    std::vector<char> selected;
    for (const GroupCell& cell : collector.cells()) selected.push_back(cell.*dimension == group ? 1 : 0);
    // A lone group is the whole.
    reports.push_back(groups.size() == 1 ? whole : report_selected(collector, selected, duration_s));
    reports.back().name = group < names.size() ? names[group] : std::to_string(group);
  }
  return reports;
}

/// Sums over the series' buckets of the steady window.
void count_window(const TimeSeries& series, SteadyReport& steady) {
  const std::int64_t width = series.width_ps();
  std::int64_t emitted = 0;
  for (std::int64_t b = steady.begin_ps / width; b < steady.end_ps / width; ++b) {
    const SeriesBucket& bucket = series.buckets()[static_cast<std::size_t>(b)];
    steady.offered += bucket.arrivals;
    steady.finished += bucket.finished;
    steady.ended += bucket.ended;
    emitted += bucket.emitted_tokens;
  }
  const double duration_s = static_cast<double>(steady.end_ps - steady.begin_ps) * 1e-12;
  if (duration_s <= 0) return;
  steady.offered_per_s = static_cast<double>(steady.offered) / duration_s;
  steady.finished_per_s = static_cast<double>(steady.finished) / duration_s;
  steady.emitted_tokens_per_s = static_cast<double>(emitted) / duration_s;
}

/// The steady window, but for its latencies.
SteadyReport report_steady(const Collector& collector) {
  SteadyReport steady;
  if (collector.first_arrival() == kNever) return steady;
  const std::int64_t width = collector.series().width_ps();
  const std::int64_t first = picoseconds(collector.first_arrival());
  const std::int64_t span = picoseconds(collector.last_arrival()) - first;
  // Inwards to the borders of buckets, since events are counted by bucket.
  steady.begin_ps = (first + span / 10 + width - 1) / width * width;
  steady.end_ps = std::max(steady.begin_ps, (first + (span - span / 10)) / width * width);
  count_window(collector.series(), steady);
  if (steady.offered > 0)
    steady.served_share = static_cast<double>(steady.finished) / static_cast<double>(steady.offered);
  // What came and did not go, beyond two percent and beyond what chance does to a stable queue.
  const auto offered = static_cast<double>(steady.offered);
  const auto growth = static_cast<double>(steady.offered - steady.ended);
  steady.is_stationary = growth <= std::max(0.02 * offered, 3 * std::sqrt(offered));
  return steady;
}

/// Latencies of all and of the steady window, in one pass over the table of requests.
void add_latencies(const RequestTable& table, GroupReport& whole, SteadyReport& steady) {
  const std::vector<std::uint8_t> marks = table.mark_arrivals(steady.begin_ps, steady.end_ps);
  for (std::size_t m = 0; m < kRequestMetrics; ++m) {
    const MarkedSummaries summaries = exact_summaries(table.column(static_cast<Metric>(m), marks));
    whole.metrics[m] = summaries.all;
    steady.metrics[m] = summaries.marked;
  }
  if (steady.offered > 0)
    steady.goodput = static_cast<double>(table.good_among(marks)) / static_cast<double>(steady.offered);
}

}  // namespace

bool Report::all_pass() const {
  return std::all_of(slos.begin(), slos.end(), [](const SloResult& slo) { return slo.pass; });
}

Report make_report(const Collector& collector, const ReportContext& context) {
  Report report;
  report.work = collector.work();
  report.limits = collector.limits();
  report.state = collector.state();
  report.series = collector.series().buckets();
  report.series_width_ps = collector.series().width_ps();
  report.steps = collector.steps();
  report.exact = collector.exact();
  report.end_ps = picoseconds(collector.end());
  report.begin_ps =
      collector.first_arrival() == kNever ? report.end_ps : picoseconds(collector.first_arrival());
  const double duration_s = static_cast<double>(report.end_ps - report.begin_ps) * 1e-12;
  const double busy_s = static_cast<double>(report.state.busy_ps) * 1e-12;
  if (duration_s > 0) report.busy_share = busy_s / duration_s;
  if (context.peak_flops_per_s > 0 && busy_s > 0)
    report.mfu = context.flops_total / (context.peak_flops_per_s * busy_s);
  if (context.bandwidth_bytes_per_s > 0 && busy_s > 0)
    report.mbu = context.bytes_total / (context.bandwidth_bytes_per_s * busy_s);

  report.whole = report_group(collector, {}, duration_s);
  report.whole.name = "all";
  report.steady = report_steady(collector);
  if (collector.exact()) add_latencies(collector.table(), report.whole, report.steady);
  const auto dimension = [&](Dimension which, const std::vector<std::string>& names) {
    return report_dimension(collector, which, names, report.whole, duration_s);
  };
  report.classes = dimension(&GroupCell::slo_class, context.names.classes);
  report.tenants = dimension(&GroupCell::tenant, context.names.tenants);
  report.sources = dimension(&GroupCell::source, context.names.sources);
  report.slos = judge_slos(collector, context);
  report.warnings = find_warnings(report, collector, context);
  report.hint = find_hint(report, context);
  return report;
}

}  // namespace foretoken

#include <algorithm>
#include <limits>

#include "sim/metrics/quantiles.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

/// Judges thresholds; the order of arrival is found once.
class Judge {
 public:
  Judge(const Collector& collector, const ReportContext& context)
      : collector_(collector), context_(context), totals_(collector.totals()) {
    const Duration span = collector.end() - std::min(collector.first_arrival(), collector.end());
    if (span.count() > 0)
      mean_in_system_ = to_double(collector.state().in_system_ps) / static_cast<double>(span.count());
  }
  SloResult judge(const Slo& slo);

 private:
  std::vector<char> select(const Slo& slo) const;
  RequestTotals totals_of(const std::vector<char>& selected) const;
  void judge_goodput(SloResult& result, const std::vector<char>& selected);
  std::int64_t judge_latency(SloResult& result, const std::vector<char>& selected);
  void judge_exact(SloResult& result, const std::vector<std::int64_t>& values);
  std::vector<std::int64_t> values_by_arrival(Metric metric, const std::vector<char>& selected);
  void set_interval(SloResult& result, const std::vector<std::int64_t>& values, double unit) const;

  const Collector& collector_;
  const ReportContext& context_;
  RequestTotals totals_;
  double mean_in_system_ = 0;
  std::vector<std::uint32_t> order_;
};

std::vector<char> Judge::select(const Slo& slo) const {
  std::vector<char> selected;
  if (slo.class_index < 0) return selected;
  for (const GroupCell& cell : collector_.cells())
    selected.push_back(cell.slo_class == slo.class_index ? 1 : 0);
  return selected;
}

RequestTotals Judge::totals_of(const std::vector<char>& selected) const {
  if (selected.empty()) return totals_;
  RequestTotals sum;
  for (std::size_t c = 0; c < selected.size(); ++c)
    if (selected[c] != 0) sum.add(collector_.cells()[c].totals);
  return sum;
}

void Judge::set_interval(SloResult& result, const std::vector<std::int64_t>& values, double unit) const {
  // Resampling says nothing about a maximum.
  if (!context_.bootstrap || result.slo.quantile == 1.0) return;
  BootstrapOptions options = context_.bootstrap_options;
  if (options.block == 0)
    options.block = block_length(static_cast<std::int64_t>(values.size()), mean_in_system_);
  const auto interval = bootstrap_interval(values, result.slo.quantile, options);
  if (!interval) return;
  result.low = interval->low * unit;
  result.high = interval->high * unit;
  result.has_interval = true;
}

void Judge::judge_goodput(SloResult& result, const std::vector<char>& selected) {
  const RequestTotals totals = totals_of(selected);
  result.few_samples = totals.offered < 100;
  if (totals.offered == 0) return;
  result.has_value = true;
  result.value = static_cast<double>(totals.good) / static_cast<double>(totals.offered);
  result.low = result.high = result.value;
  // Whoever did not finish is known by number only, so that the order of arrival is complete for all requests
  // together.
  if (!selected.empty() || !collector_.exact()) return;
  const RequestTable& table = collector_.table();
  std::vector<std::int64_t> good(static_cast<std::size_t>(totals.offered));
  for (std::int64_t row = 0; row < table.size(); ++row) {
    const auto id = static_cast<std::size_t>(table.id(row));
    if (id >= good.size()) return;
    good[id] = table.good(row) ? 1 : 0;
  }
  set_interval(result, good, 1.0);
}

std::vector<std::int64_t> Judge::values_by_arrival(Metric metric, const std::vector<char>& selected) {
  const RequestTable& table = collector_.table();
  if (order_.empty()) order_ = table.rows_by_id();
  std::vector<std::int64_t> values;
  values.reserve(order_.size());
  for (const std::uint32_t row : order_) {
    if (!selected.empty() && selected[table.cell(row)] == 0) continue;
    const std::int64_t value = table.value_ps(metric, row);
    if (value >= 0) values.push_back(value);
  }
  return values;
}

void Judge::judge_exact(SloResult& result, const std::vector<std::int64_t>& values) {
  if (result.slo.quantile) {
    std::vector<std::int64_t> ordered = values;
    result.value = quantile_of(ordered, *result.slo.quantile);
  } else {
    Wide sum = 0;
    for (const std::int64_t value : values) sum += value;
    result.value = to_double(sum) / static_cast<double>(values.size());
  }
  result.low = result.high = result.value;
  set_interval(result, values, 1.0);
}

std::int64_t Judge::judge_latency(SloResult& result, const std::vector<char>& selected) {
  const Slo& slo = result.slo;
  if (slo.metric != Metric::gap && collector_.exact()) {
    const std::vector<std::int64_t> values = values_by_arrival(slo.metric, selected);
    if (!values.empty()) judge_exact(result, values);
    return static_cast<std::int64_t>(values.size());
  }
  const Histogram histogram = collector_.merged(slo.metric, selected);
  result.value = slo.quantile ? histogram.quantile_ps(*slo.quantile) : histogram.mean_ps();
  result.low = result.high = result.value;
  return histogram.count();
}

SloResult Judge::judge(const Slo& slo) {
  SloResult result;
  result.slo = slo;
  const std::vector<char> selected = select(slo);
  if (!slo.is_latency) {
    judge_goodput(result, selected);
    result.pass = result.has_value && meets(slo, result.value);
    return result;
  }
  const std::int64_t samples = judge_latency(result, selected);
  const double tail = slo.quantile && *slo.quantile < 1 ? 1 - *slo.quantile : 1;
  result.few_samples = static_cast<double>(samples) < 10 / tail - 1e-6;
  result.has_value = samples > 0;
  result.pass = result.has_value && meets(slo, result.value);
  return result;
}

}  // namespace

std::vector<SloResult> judge_slos(const Collector& collector, const ReportContext& context) {
  Judge judge(collector, context);
  std::vector<SloResult> results;
  for (const Slo& slo : collector.options().slos) results.push_back(judge.judge(slo));
  return results;
}

}  // namespace foretoken

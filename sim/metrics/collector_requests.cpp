#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/metrics/collector.hpp"

namespace foretoken {
namespace {

std::int64_t rounded_quotient(std::int64_t value, std::int64_t by) { return (value + by / 2) / by; }

}  // namespace

RequestRecord Collector::make_record(const Row& r, std::int64_t t, Outcome outcome) const {
  RequestRecord record;
  const GroupCell& cell = cells_[r.cell];
  record.id = static_cast<RequestId>(r.id);
  record.outcome = outcome;
  record.slo_class = cell.slo_class;
  record.tenant = cell.tenant;
  record.source = cell.source;
  record.truncated = outcome == Outcome::finished && r.emitted < r.output_wanted;
  record.prompt_tokens = r.prompt_tokens;
  record.output_tokens = r.emitted;
  record.cached_tokens = r.cached_tokens;
  record.preemptions = r.preemptions;
  record.arrival_ps = r.arrival;
  record.end_ps = t;
  auto& value = record.value_ps;
  const std::int64_t between_tokens = r.last_token - r.first_token;
  value[index(Metric::tpot)] = r.emitted > 1 ? rounded_quotient(between_tokens, r.emitted - 1) : -1;
  value[index(Metric::queue_time)] = r.queue;
  value[index(Metric::preempted_time)] = r.preempted;
  value[index(Metric::stall_max)] = r.stall_max;
  value[index(Metric::prefill_time)] = r.prefill;
  value[index(Metric::stalled_time)] = r.stalled;
  value[index(Metric::decode_time)] = (t - r.arrival) - r.queue - r.preempted - r.prefill - r.stalled;
  return record;
}

void Collector::finish(RequestRecord& record, std::uint32_t cell, std::int64_t first_token,
                       std::int64_t delivered) {
  auto& value = record.value_ps;
  const bool finished = record.outcome == Outcome::finished;
  const bool streamed = options_.delivery == Delivery::streamed;
  const std::int64_t tokens = record.output_tokens;
  const std::int64_t e2e = delivered - record.arrival_ps;
  value[index(Metric::e2e)] = finished ? e2e : -1;
  value[index(Metric::ntpot)] = finished && tokens > 0 ? rounded_quotient(e2e, tokens) : -1;
  value[index(Metric::ttft)] = -1;
  if (tokens > 0 && streamed) value[index(Metric::ttft)] = first_token - record.arrival_ps;
  if (tokens > 0 && !streamed && finished) value[index(Metric::ttft)] = e2e;

  RequestTotals& totals = cells_[cell].totals;
  const std::int64_t seen = finished || streamed ? tokens : 0;
  totals.delivered_tokens += seen;
  totals.cancelled += record.outcome == Outcome::cancelled ? 1 : 0;
  totals.unfinished += record.outcome == Outcome::unfinished ? 1 : 0;
  if (finished) {
    ++totals.finished;
    ++series_.at(Time(Duration(delivered))).finished;
    totals.truncated += record.truncated ? 1 : 0;
    totals.queue_ps += value[index(Metric::queue_time)];
    totals.prefill_ps += value[index(Metric::prefill_time)];
    totals.decode_ps += value[index(Metric::decode_time)];
    totals.preempted_ps += value[index(Metric::preempted_time)];
    totals.stalled_ps += value[index(Metric::stalled_time)];
    record.good = is_good(record);
    totals.good += record.good ? 1 : 0;
    totals.good_tokens += record.good ? seen : 0;
    keep(record, cell);
  }
  if (options_.sink != nullptr) options_.sink->write(record);
}

bool Collector::is_good(const RequestRecord& record) const {
  for (const Slo& slo : options_.slos) {
    if (!is_per_request(slo)) continue;
    if (slo.class_index >= 0 && slo.class_index != record.slo_class) continue;
    const std::int64_t value = record.value_ps[index(slo.metric)];
    if (value >= 0 && (slo.inclusive ? value > slo.limit_ps : value >= slo.limit_ps)) return false;
  }
  return true;
}

void Collector::keep(const RequestRecord& record, std::uint32_t cell) {
  if (exact() && table_.size() < options_.exact_requests_max) {
    table_.append(record.id, cell, record.good, record.arrival_ps, record.value_ps);
    return;
  }
  if (exact()) move_to_histograms();
  const std::size_t base = is_split() ? cell * kRequestMetrics : 0;
  for (std::size_t m = 0; m < kRequestMetrics; ++m)
    if (record.value_ps[m] >= 0) histograms_[base + m].add(record.value_ps[m]);
}

void Collector::move_to_histograms() {
  const std::size_t cells = is_split() ? cells_.size() : 1;
  histograms_.resize(cells * kRequestMetrics);
  for (std::int64_t row = 0; row < table_.size(); ++row) {
    const std::size_t base = is_split() ? table_.cell(row) * kRequestMetrics : 0;
    for (std::size_t m = 0; m < kRequestMetrics; ++m) {
      const std::int64_t value = table_.value_ps(static_cast<Metric>(m), row);
      if (value >= 0) histograms_[base + m].add(value);
    }
  }
  table_.clear();
}

RequestTotals Collector::totals() const {
  RequestTotals sum;
  for (const GroupCell& cell : cells_) sum.add(cell.totals);
  return sum;
}

Histogram Collector::merged(Metric metric, const std::vector<char>& selected) const {
  if (metric == Metric::gap && (selected.empty() || cells_.size() == 1))
    return selected.empty() || selected[0] != 0 ? gaps_ : Histogram{};
  Histogram sum;
  if (!is_split()) {
    if (metric != Metric::gap && selected.empty() && !exact()) return histograms_[index(metric)];
    return sum;
  }
  for (std::size_t c = 0; c < cells_.size(); ++c) {
    if (!selected.empty() && selected[c] == 0) continue;
    if (metric == Metric::gap)
      sum.merge(cell_gaps_[c]);
    else if (!exact())
      sum.merge(histograms_[c * kRequestMetrics + index(metric)]);
  }
  return sum;
}

}  // namespace foretoken

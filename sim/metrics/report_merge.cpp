#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

void merge_summary(Summary& merged, const std::vector<const Summary*>& parts) {
  std::vector<double> values;
  merged = Summary{};
  for (const Summary* part : parts) {
    merged.count += part->count;
    merged.excluded += part->excluded;
    merged.exact = merged.exact && part->exact;
  }
  for (std::size_t s = 0; s < kStatistics; ++s) {
    values.clear();
    for (const Summary* part : parts)
      if (part->count > 0) values.push_back(part->value_ps[s]);
    if (values.empty()) continue;
    if (static_cast<Statistic>(s) == Statistic::max) {
      merged.value_ps[s] = *std::max_element(values.begin(), values.end());
      continue;
    }
    const ReplicateMean mean = replicate_mean(values);
    merged.value_ps[s] = mean.mean;
    if (values.size() > 1) merged.half_width_ps[s] = mean.half_width;
  }
}

/// Mean and half-width of one figure over the parts; parts without it do not count.
template <class Part, class Figure>
ReplicateMean merge_figure(const std::vector<const Part*>& parts, Figure figure) {
  std::vector<double> values;
  for (const Part* part : parts) {
    const std::optional<double> value = figure(*part);
    if (value) values.push_back(*value);
  }
  if (values.empty()) return {};
  ReplicateMean mean = replicate_mean(values);
  if (values.size() == 1) mean.half_width = 0;
  return mean;
}

template <class Part>
std::vector<const Part*> pick(const std::vector<Report>& reports, const Part& (*part)(const Report&)) {
  std::vector<const Part*> parts;
  for (const Report& report : reports) parts.push_back(&part(report));
  return parts;
}

GroupReport merge_groups(const std::vector<const GroupReport*>& parts) {
  GroupReport merged;
  merged.name = parts.front()->name;
  for (const GroupReport* part : parts) merged.totals.add(part->totals);
  for (std::size_t m = 0; m < kMetrics; ++m) {
    std::vector<const Summary*> summaries;
    for (const GroupReport* part : parts) summaries.push_back(&part->metrics[m]);
    merge_summary(merged.metrics[m], summaries);
  }
  const auto goodput = merge_figure(parts, [](const GroupReport& g) { return g.goodput; });
  if (merged.totals.offered > 0) merged.goodput = goodput.mean;
  merged.goodput_half_width = goodput.half_width;
  const auto rate = [&](double GroupReport::*figure) {
    return merge_figure(parts, [figure](const GroupReport& g) { return std::optional<double>(g.*figure); });
  };
  merged.offered_per_s = rate(&GroupReport::offered_per_s).mean;
  merged.finished_per_s = rate(&GroupReport::finished_per_s).mean;
  merged.finished_half_width_per_s = rate(&GroupReport::finished_per_s).half_width;
  merged.delivered_tokens_per_s = rate(&GroupReport::delivered_tokens_per_s).mean;
  merged.tokens_half_width_per_s = rate(&GroupReport::delivered_tokens_per_s).half_width;
  return merged;
}

std::vector<GroupReport> merge_dimension(const std::vector<Report>& reports,
                                         std::vector<GroupReport> Report::*dimension) {
  // A group that some replicate never saw is still a group: names are collected in the order of appearance.
  std::vector<std::string> names;
  for (const Report& report : reports)
    for (const GroupReport& group : report.*dimension)
      if (std::find(names.begin(), names.end(), group.name) == names.end()) names.push_back(group.name);
  std::vector<GroupReport> merged;
  for (const std::string& name : names) {
    std::vector<const GroupReport*> parts;
    for (const Report& report : reports)
      for (const GroupReport& group : report.*dimension)
        if (group.name == name) parts.push_back(&group);
    merged.push_back(merge_groups(parts));
  }
  return merged;
}

SteadyReport merge_steady(const std::vector<Report>& reports) {
  SteadyReport merged = reports.front().steady;
  const auto parts =
      pick<SteadyReport>(reports, [](const Report& r) -> const SteadyReport& { return r.steady; });
  const auto mean = [&](double SteadyReport::*figure) {
    return merge_figure(parts, [figure](const SteadyReport& s) { return std::optional<double>(s.*figure); })
        .mean;
  };
  merged.offered = merged.finished = merged.ended = 0;
  for (const SteadyReport* part : parts) {
    merged.offered += part->offered;
    merged.finished += part->finished;
    merged.ended += part->ended;
    merged.is_stationary = merged.is_stationary && part->is_stationary;
  }
  merged.offered_per_s = mean(&SteadyReport::offered_per_s);
  merged.finished_per_s = mean(&SteadyReport::finished_per_s);
  merged.emitted_tokens_per_s = mean(&SteadyReport::emitted_tokens_per_s);
  for (std::size_t m = 0; m < kRequestMetrics; ++m) {
    std::vector<const Summary*> summaries;
    for (const SteadyReport* part : parts) summaries.push_back(&part->metrics[m]);
    merge_summary(merged.metrics[m], summaries);
  }
  if (merged.offered > 0) {
    merged.served_share = static_cast<double>(merged.finished) / static_cast<double>(merged.offered);
    merged.goodput = merge_figure(parts, [](const SteadyReport& s) { return s.goodput; }).mean;
  }
  return merged;
}

void merge_state(StateTotals& into, const StateTotals& other) {
  into.in_system_ps += other.in_system_ps;
  into.life_ps += other.life_ps;
  into.resident_ps += other.resident_ps;
  into.kv_held_ps += other.kv_held_ps;
  into.kv_reserved_ps += other.kv_reserved_ps;
  into.kv_slack_ps += other.kv_slack_ps;
  into.kv_cut_off_ps += other.kv_cut_off_ps;
  into.busy_ps += other.busy_ps;
  if (other.kv_held_max > into.kv_held_max) {
    into.kv_held_max = other.kv_held_max;
    into.kv_held_max_at = other.kv_held_max_at;
  }
  into.resident_max = std::max(into.resident_max, other.resident_max);
  into.waiting_max = std::max(into.waiting_max, other.waiting_max);
}

void merge_sums(Report& merged, const Report& other) {
  merged.work.add(other.work);
  for (std::size_t reason = 0; reason < kLeftOutReasons; ++reason) {
    merged.limits.steps[reason] += other.limits.steps[reason];
    merged.limits.time_ps[reason] += other.limits.time_ps[reason];
    merged.limits.request_ps[reason] += other.limits.request_ps[reason];
  }
  merge_state(merged.state, other.state);
  merged.steps += other.steps;
  merged.replicates += other.replicates;
  merged.exact = merged.exact && other.exact;
  for (const WarningText& warning : other.warnings) {
    const auto is_same = [&](const WarningText& w) { return w.kind == warning.kind; };
    if (std::none_of(merged.warnings.begin(), merged.warnings.end(), is_same))
      merged.warnings.push_back(warning);
  }
}

std::vector<SloResult> merge_slos(const std::vector<Report>& reports) {
  std::vector<SloResult> merged = reports.front().slos;
  for (std::size_t s = 0; s < merged.size(); ++s) {
    std::vector<double> values;
    for (const Report& report : reports) {
      FT_CHECK(report.slos.size() == merged.size());
      values.push_back(report.slos[s].value);
      merged[s].few_samples = merged[s].few_samples || report.slos[s].few_samples;
      merged[s].has_value = merged[s].has_value && report.slos[s].has_value;
    }
    ReplicateMean mean = replicate_mean(values);
    const bool is_max = merged[s].slo.quantile == 1.0;
    if (is_max) mean.mean = *std::max_element(values.begin(), values.end());
    merged[s].value = mean.mean;
    merged[s].has_interval = values.size() > 1 && !is_max;
    // Neither a duration nor a share lies below 0, whatever the formula of the interval says.
    merged[s].low = merged[s].has_interval ? std::max(0.0, mean.mean - mean.half_width) : mean.mean;
    merged[s].high = merged[s].has_interval ? mean.mean + mean.half_width : mean.mean;
    merged[s].pass = merged[s].has_value && meets(merged[s].slo, mean.mean);
  }
  return merged;
}

}  // namespace

Report merge_replicates(const std::vector<Report>& reports, const ReportContext& context) {
  FT_CHECK(!reports.empty());
  if (reports.size() == 1) return reports.front();
  Report merged = reports.front();
  for (std::size_t r = 1; r < reports.size(); ++r) merge_sums(merged, reports[r]);
  merged.whole =
      merge_groups(pick<GroupReport>(reports, [](const Report& r) -> const GroupReport& { return r.whole; }));
  merged.steady = merge_steady(reports);
  merged.classes = merge_dimension(reports, &Report::classes);
  merged.tenants = merge_dimension(reports, &Report::tenants);
  merged.sources = merge_dimension(reports, &Report::sources);
  merged.slos = merge_slos(reports);
  const auto parts = pick<Report>(reports, [](const Report& r) -> const Report& { return r; });
  merged.busy_share =
      merge_figure(parts, [](const Report& r) { return std::optional<double>(r.busy_share); }).mean;
  if (merged.mfu) merged.mfu = merge_figure(parts, [](const Report& r) { return r.mfu; }).mean;
  if (merged.mbu) merged.mbu = merge_figure(parts, [](const Report& r) { return r.mbu; }).mean;
  merged.hint = find_hint(merged, context);
  return merged;
}

}  // namespace foretoken

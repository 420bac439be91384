#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/text.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kLabel = 18;
constexpr std::size_t kCell = 9;

std::string left(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

/// Builds lines no wider than the table: parts that do not fit are dropped.
class Lines {
 public:
  Lines(std::size_t columns, bool color) : columns_(columns), color_(color) {}
  /// Begins a line with its first part, cut to the width.
  void begin(const std::string& text) {
    end();
    line_ = text.substr(0, columns_);
    width_ = line_.size();
    is_open_ = true;
  }
  /// Adds a part if it fits.
  void add(const std::string& text) {
    if (width_ + text.size() > columns_) return;
    line_ += text;
    width_ += text.size();
  }
  /// The same in colour: an ANSI code such as 31.
  void add(const std::string& text, int color_code) {
    if (!color_ || width_ + text.size() > columns_) return add(text);
    line_ += "\033[" + std::to_string(color_code) + "m" + text + "\033[0m";
    width_ += text.size();
  }
  /// A sentence, broken at blanks into lines indented by the label's width.
  void sentence(const std::string& label, const std::string& text, int color_code) {
    begin("");
    add(left(label, kLabel), color_code);
    for (const std::string_view word : split(text, ' ')) {
      if (width_ + 1 + word.size() > columns_ && width_ > kLabel) begin(std::string(kLabel, ' '));
      add((width_ == kLabel ? "  " : " ") + std::string(word));
    }
  }
  std::string finish() {
    end();
    return std::move(text_);
  }

 private:
  void end() {
    if (!is_open_) return;
    while (!line_.empty() && line_.back() == ' ') line_.pop_back();
    text_ += line_ + '\n';
    is_open_ = false;
  }

  std::size_t columns_;
  bool color_;
  std::string text_;
  std::string line_;
  std::size_t width_ = 0;
  bool is_open_ = false;
};

constexpr int kRed = 31;
constexpr int kGreen = 32;
constexpr int kYellow = 33;
constexpr int kBold = 1;

std::string slo_value(const SloResult& result, double value) {
  return result.slo.is_latency ? duration_text(std::llround(value)) : percent_text(value);
}

void print_thresholds(Lines& lines, const Report& report) {
  if (report.slos.empty()) return;
  lines.begin("");
  lines.add("THRESHOLDS", kBold);
  for (const SloResult& result : report.slos) {
    lines.begin("");
    lines.add(result.pass ? "  pass  " : "  FAIL  ", result.pass ? kGreen : kRed);
    lines.add(left(slo_text(result.slo), 28));
    lines.add(right(result.has_value ? slo_value(result, result.value) : "-", kCell + 2));
    if (result.has_interval && result.has_value)
      lines.add("  [" + slo_value(result, result.low) + ", " + slo_value(result, result.high) + "]");
    if (result.few_samples) lines.add("  few samples", kYellow);
  }
}

/// The columns that fit, the least telling dropped first.
std::vector<Statistic> columns_that_fit(std::size_t columns) {
  std::vector<Statistic> shown{Statistic::mean, Statistic::p50,  Statistic::p90, Statistic::p95,
                               Statistic::p99,  Statistic::p999, Statistic::max};
  for (const Statistic dropped :
       {Statistic::p95, Statistic::max, Statistic::p999, Statistic::p90, Statistic::mean, Statistic::p99}) {
    if (kLabel + kCell * shown.size() <= columns) break;
    shown.erase(std::find(shown.begin(), shown.end(), dropped));
  }
  return shown;
}

void print_latency(Lines& lines, const Report& report, const TableOptions& options) {
  const std::vector<Statistic> shown = columns_that_fit(static_cast<std::size_t>(options.columns));
  lines.begin("");
  lines.add(left("LATENCY (ms)", kLabel), kBold);
  for (const Statistic statistic : shown) lines.add(right(std::string(statistic_name(statistic)), kCell));
  for (const Metric metric : {Metric::ttft, Metric::tpot, Metric::gap, Metric::e2e, Metric::queue_time,
                              Metric::preempted_time, Metric::stall_max}) {
    const Summary& summary = report.whole.metrics[index(metric)];
    if (summary.count == 0) continue;
    if (metric == Metric::preempted_time && summary[Statistic::max] == 0) continue;
    lines.begin(left("  " + std::string(metric_name(metric)), kLabel));
    for (const Statistic statistic : shown)
      lines.add(right(summary.has(statistic) ? short_number(summary[statistic] * 1e-9) : "-", kCell));
  }
}

void print_groups(Lines& lines, const std::vector<GroupReport>& groups, const std::string& title) {
  constexpr std::size_t kShown = 12;
  if (groups.size() < 2) return;
  lines.begin("");
  lines.add(left(title, kLabel), kBold);
  for (const char* head : {"offered", "finished", "goodput", "ttft p50", "ttft p99", "tpot p50", "e2e p50"})
    lines.add(right(head, kCell + 1));
  const auto figure = [](const GroupReport& group, Metric metric, Statistic statistic) {
    const Summary& summary = group.metrics[index(metric)];
    const bool is_known = summary.count > 0 && summary.has(statistic);
    return right(is_known ? short_number(summary[statistic] * 1e-9) : "-", kCell + 1);
  };
  for (std::size_t g = 0; g < std::min(groups.size(), kShown); ++g) {
    const GroupReport& group = groups[g];
    lines.begin(left("  " + group.name.substr(0, kLabel - 3), kLabel));
    lines.add(right(with_commas(group.totals.offered), kCell + 1));
    lines.add(right(with_commas(group.totals.finished), kCell + 1));
    lines.add(right(group.goodput ? percent_text(*group.goodput) : "-", kCell + 1));
    lines.add(figure(group, Metric::ttft, Statistic::p50));
    lines.add(figure(group, Metric::ttft, Statistic::p99));
    lines.add(figure(group, Metric::tpot, Statistic::p50));
    lines.add(figure(group, Metric::e2e, Statistic::p50));
  }
  if (groups.size() > kShown) lines.begin("  and " + std::to_string(groups.size() - kShown) + " more");
}

std::string with_half_width(double value, double half_width) {
  return short_number(value) + (half_width > 0 ? " +- " + short_number(half_width) : "");
}

void print_throughput(Lines& lines, const Report& report) {
  const GroupReport& whole = report.whole;
  lines.begin("");
  lines.add(left("THROUGHPUT", kLabel), kBold);
  lines.add("  " + with_half_width(whole.finished_per_s, whole.finished_half_width_per_s) + " req/s");
  lines.add("   " +
            (whole.tokens_half_width_per_s > 0
                 ? with_half_width(whole.delivered_tokens_per_s, whole.tokens_half_width_per_s)
                 : with_commas(std::llround(whole.delivered_tokens_per_s))) +
            " out tok/s");
  if (whole.goodput) lines.add("   goodput " + percent_text(*whole.goodput));
  const SteadyReport& steady = report.steady;
  if (steady.end_ps > steady.begin_ps) {
    lines.begin("");
    lines.add(left("  steady window", kLabel));
    lines.add("  " + duration_text(steady.begin_ps) + " to " + duration_text(steady.end_ps));
    lines.add("   " + short_number(steady.offered_per_s) + " req/s offered, " +
              short_number(steady.finished_per_s) + " served");
    const Summary& ttft = steady.metrics[index(Metric::ttft)];
    if (ttft.count > 0) lines.add("   ttft mean " + short_number(ttft[Statistic::mean] * 1e-9) + " ms");
    if (steady.goodput) lines.add("   goodput " + percent_text(*steady.goodput));
  }
}

void print_time(Lines& lines, const Report& report) {
  const std::array<double, 5> shares = time_shares(report.whole.totals);
  constexpr std::array<const char*, 5> names{"queue", "prefill", "decode", "preempted", "stalled"};
  lines.begin("");
  lines.add(left("WHERE TIME WENT", kLabel), kBold);
  for (std::size_t part = 0; part < shares.size(); ++part)
    if (shares[part] > 0) lines.add("  " + std::string(names[part]) + " " + percent_text(shares[part]));
  lines.begin(left("BUSY", kLabel));
  lines.add("  " + percent_text(report.busy_share) + " of the time");
  if (report.mfu) lines.add("   MFU " + percent_text(*report.mfu));
  if (report.mbu) lines.add("   MBU " + percent_text(*report.mbu));
  const WorkTotals& work = report.work;
  const auto share = [&](std::int64_t tokens) {
    return percent_text(static_cast<double>(tokens) / static_cast<double>(work.computed_tokens));
  };
  if (work.padding_tokens > 0) lines.add("   prompt padding " + share(work.padding_tokens) + " of tokens");
  if (work.dead_tokens > 0) lines.add("   dead rows " + share(work.dead_tokens));
  if (report.whole.totals.recomputed_tokens > 0)
    lines.add("   recomputed " + share(report.whole.totals.recomputed_tokens));
}

void print_limit(Lines& lines, const Report& report, const ReportContext& context) {
  const auto limit = binding_limit(report.limits);
  lines.begin("");
  lines.add(left("LIMIT", kLabel), kBold);
  if (limit && report.state.busy_ps > 0)
    lines.add("  " + std::string(limit_name(*limit)) + " in " +
              percent_text(static_cast<double>(report.limits.time_ps[static_cast<std::size_t>(*limit)]) /
                           static_cast<double>(report.state.busy_ps)) +
              " of the time");
  else
    lines.add("  nobody was left out");
  lines.add("; " + with_commas(report.whole.totals.preemptions) + " preemptions");
  lines.add("; max running " + std::to_string(report.state.resident_max) +
            (context.sequences_max > 0 ? " of " + std::to_string(context.sequences_max) : ""));
  lines.add(", waiting " + with_commas(report.state.waiting_max));
}

void print_memory(Lines& lines, const Report& report) {
  const StateTotals& state = report.state;
  if (state.kv_blocks_total == 0 || state.busy_ps == 0) return;
  const auto total = static_cast<double>(state.kv_blocks_total);
  const auto mean = [&](Wide integral) { return to_double(integral) / static_cast<double>(state.busy_ps); };
  lines.begin("");
  lines.add(left("MEMORY", kLabel), kBold);
  lines.add("  KV blocks mean " + percent_text(mean(state.kv_held_ps) / total) + ", max " +
            percent_text(static_cast<double>(state.kv_held_max) / total) + " at " +
            duration_text(state.kv_held_max_at.time_since_epoch().count()));
  if (state.kv_reserved_ps > 0)
    lines.add("; reserved unused " + percent_text(mean(state.kv_reserved_ps) / total));
  const RequestTotals& totals = report.whole.totals;
  if (totals.prefix_hit_tokens > 0)
    lines.add("; prefix hits " + percent_text(static_cast<double>(totals.prefix_hit_tokens) /
                                              static_cast<double>(totals.prompt_tokens_admitted)));
  if (report.work.swapped_blocks_out > 0)
    lines.add("; swapped out " + with_commas(report.work.swapped_blocks_out) + " blocks");
}

void print_closing(Lines& lines, const Report& report, const ReportContext& context) {
  const RequestTotals& totals = report.whole.totals;
  lines.begin(with_commas(totals.offered) + " offered, " + with_commas(totals.finished) + " finished");
  if (totals.refused() > 0) lines.add(", " + with_commas(totals.refused()) + " refused");
  if (totals.cancelled > 0) lines.add(", " + with_commas(totals.cancelled) + " cancelled");
  if (totals.unfinished > 0) lines.add(", " + with_commas(totals.unfinished) + " unfinished");
  if (totals.truncated > 0) lines.add(", " + with_commas(totals.truncated) + " truncated");
  const bool has_interval = std::any_of(report.slos.begin(), report.slos.end(),
                                        [](const SloResult& slo) { return slo.has_interval; });
  if (report.replicates > 1)
    lines.add("; " + std::to_string(report.replicates) + " seeds, 95 % intervals");
  else if (has_interval)
    lines.add("; 95 % intervals by moving-block bootstrap");
  if (!report.exact) lines.add("; percentiles within 0.4 %");
  if (!context.evidence.empty()) lines.begin("costs: " + context.evidence);
}

}  // namespace

std::string report_table(const Report& report, const ReportContext& context, const TableOptions& options) {
  Lines lines(static_cast<std::size_t>(std::clamp(options.columns, 40, 100)), options.color);
  if (!context.source_line.empty()) lines.begin(context.source_line);
  print_thresholds(lines, report);
  print_latency(lines, report, options);
  print_groups(lines, report.classes, "CLASS");
  print_groups(lines, report.tenants, "TENANT");
  print_groups(lines, report.sources, "SOURCE");
  print_throughput(lines, report);
  print_time(lines, report);
  print_limit(lines, report, context);
  print_memory(lines, report);
  for (const WarningText& warning : report.warnings)
    lines.sentence("WARNING", warning.text + ": " + warning.advice, kYellow);
  if (!report.hint.empty()) lines.sentence("HINT", report.hint, kYellow);
  print_closing(lines, report, context);
  return lines.finish();
}

}  // namespace foretoken

#include <algorithm>
#include <array>

#include "sim/base/text.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(ReportWarning::count_)> kNames{
    "few-samples",       "not-stationary",        "tied-arrivals",    "no-prefix-data",
    "cost-out-of-range", "truncated-requests",    "refused-requests", "unfinished-requests",
    "preemption-tax",    "histogram-percentiles", "nothing-finished", "late-arrivals"};

constexpr std::array<std::string_view, kLeftOutReasons> kLimits{
    "token budget",  "sequence cap", "KV blocks",          "join rule",       "freeze after preemption",
    "swapped first", "head of line", "prefill runs alone", "block transfers", "eviction"};

double share_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return with_commas(count) + " " + std::string(count == 1 ? one : many);
}

/// Collects the warnings about requests.
void warn_of_requests(std::vector<WarningText>& warnings, const Report& report) {
  const RequestTotals& totals = report.whole.totals;
  const auto requests = [](std::int64_t count) { return counted(count, "request", "requests"); };
  if (totals.offered > 0 && totals.finished == 0)
    warnings.push_back({ReportWarning::nothing_finished, "none of " + requests(totals.offered) + " finished",
                        "lengthen the run, or see the refused and unfinished ones"});
  if (!report.steady.is_stationary)
    warnings.push_back({ReportWarning::not_stationary,
                        "queue still growing: " + short_number(report.steady.offered_per_s) +
                            " req/s offered, " + short_number(report.steady.finished_per_s) + " served",
                        "latencies grow with the length of the run: lower the rate or add capacity"});
  if (totals.refused() > 0)
    warnings.push_back({ReportWarning::refused_requests,
                        requests(totals.refused()) + " refused: " + with_commas(totals.refused_context) +
                            " beyond the context, " + with_commas(totals.refused_memory) +
                            " beyond the KV pool",
                        "they count as not good; raise the limits or filter the trace"});
  if (totals.unfinished > 0)
    warnings.push_back({ReportWarning::unfinished_requests,
                        requests(totals.unfinished) + " unfinished at the end; latencies do not know them",
                        "let the run drain, or compare runs of equal length only"});
  if (totals.truncated > 0)
    warnings.push_back({ReportWarning::truncated_requests,
                        "answers of " + requests(totals.truncated) + " cut short of what the trace says",
                        "raise max_new_tokens or the model's context"});
  if (share_of(totals.recomputed_tokens, report.work.new_tokens) > 0.05)
    warnings.push_back({ReportWarning::preemption_tax,
                        percent_text(share_of(totals.recomputed_tokens, report.work.new_tokens)) +
                            " of all computed tokens computed again after preemptions",
                        "reserve more at admission, or keep fewer sequences resident"});
}

void warn_of_samples(std::vector<WarningText>& warnings, const Report& report) {
  const std::int64_t finished = report.whole.totals.finished;
  if (finished == 0) return;
  const bool slo_on_few =
      std::any_of(report.slos.begin(), report.slos.end(), [](const SloResult& s) { return s.few_samples; });
  if (finished < samples_needed(Statistic::p99) || slo_on_few)
    warnings.push_back({ReportWarning::few_samples,
                        slo_on_few ? "a threshold stands on too few samples (" + with_commas(finished) +
                                         " finished requests)"
                                   : "p99 needs 1,000 samples, there are " + with_commas(finished),
                        "lengthen the run, or judge by p50 to p95"});
  if (!report.exact)
    warnings.push_back({ReportWarning::histogram_percentiles,
                        "percentiles come from histograms (relative error at most 0.4 %)",
                        "raise the number of requests kept for exact percentiles, at 100 bytes each"});
}

}  // namespace

std::string_view warning_name(ReportWarning warning) { return kNames[static_cast<std::size_t>(warning)]; }

std::string_view limit_name(LeftOut reason) { return kLimits[static_cast<std::size_t>(reason)]; }

std::string percent_text(double share) {
  const double percent = 100 * share;
  return short_number(percent < 0.01 && percent > 0 ? 0.01 : percent) + " %";
}

std::optional<LeftOut> binding_limit(const LimitTotals& limits) {
  const auto most = std::max_element(limits.time_ps.begin(), limits.time_ps.end());
  if (*most == 0) return std::nullopt;
  return static_cast<LeftOut>(most - limits.time_ps.begin());
}

std::array<double, 5> time_shares(const RequestTotals& totals) {
  const std::array<Wide, 5> parts{totals.queue_ps, totals.prefill_ps, totals.decode_ps, totals.preempted_ps,
                                  totals.stalled_ps};
  Wide sum = 0;
  for (const Wide part : parts) sum += part;
  std::array<double, 5> shares{};
  for (std::size_t p = 0; p < parts.size() && sum > 0; ++p) shares[p] = to_double(parts[p]) / to_double(sum);
  return shares;
}

std::vector<WarningText> find_warnings(const Report& report, const Collector& collector,
                                       const ReportContext& context) {
  std::vector<WarningText> warnings;
  warn_of_requests(warnings, report);
  warn_of_samples(warnings, report);
  const std::int64_t offered = report.whole.totals.offered;
  const std::int64_t tied = collector.tied_arrivals();
  // A batch that comes all at once is meant to.
  if (tied > offered / 10 && tied + 1 < offered)
    warnings.push_back(
        {ReportWarning::tied_arrivals,
         percent_text(share_of(tied, offered)) + " of the arrivals share a time stamp with another",
         "use --spread-ties uniform where the clock of the trace is coarse"});
  if (context.prefix_cache && !collector.has_prefix_data() && offered > 0)
    warnings.push_back({ReportWarning::no_prefix_data,
                        "the prefix cache is on, but no request carries prefix data: nothing can be shared",
                        "use a trace with prefix hashes, or turn the cache off"});
  if (context.cost_out_of_range > 0)
    warnings.push_back({ReportWarning::cost_out_of_range,
                        percent_text(share_of(context.cost_out_of_range, context.cost_queries)) +
                            " of the prices asked for lie outside the profile's measured range",
                        "calibrate over a wider range"});
  if (context.live && offered > 0 && collector.arrival_lag_max() > std::chrono::milliseconds(1))
    warnings.push_back(
        {ReportWarning::late_arrivals,
         "arrivals were seen up to " + duration_text(collector.arrival_lag_max().count()) + " late, " +
             duration_text(static_cast<std::int64_t>(collector.arrival_lag_ps() / offered)) + " on average",
         "a step in progress delays them; a longer wait points at the host"});
  return warnings;
}

std::string find_hint(const Report& report, const ReportContext& context) {
  const auto fails =
      std::find_if(report.slos.begin(), report.slos.end(), [](const SloResult& s) { return !s.pass; });
  const std::string subject = fails == report.slos.end() ? "" : slo_text(fails->slo) + " fails: ";
  const auto limit = binding_limit(report.limits);
  const std::array<double, 5> shares = time_shares(report.whole.totals);
  if (!report.steady.is_stationary)
    return subject + "more is offered than can be served; lower the rate or add a replica";
  if (limit && report.state.busy_ps > 0) {
    const double bound = static_cast<double>(report.limits.time_ps[static_cast<std::size_t>(*limit)]) /
                         static_cast<double>(report.state.busy_ps);
    if (*limit == LeftOut::kv_blocks && bound > 0.05)
      return subject + "memory binds in " + percent_text(bound) +
             " of the time; try more KV blocks or fewer sequences";
    if (*limit == LeftOut::sequence_cap && bound > 0.05)
      return subject + "the sequence cap binds in " + percent_text(bound) + " of the time; try a higher one";
    if (*limit == LeftOut::token_budget && bound > 0.05)
      return subject + "the token budget binds in " + percent_text(bound) +
             " of the time; try a larger or smaller one";
    if (*limit == LeftOut::join_rule && bound > 0.05)
      return subject + "requests wait for a batch to end; compare with continuous batching";
  }
  if (shares[4] > 0.05)
    return subject + "residents stall for " + percent_text(shares[4]) + " of their time; try chunked prompts";
  if (!subject.empty() && context.batch_tokens_max > 0)
    return subject + "try other token budgets than " + std::to_string(context.batch_tokens_max);
  return "";
}

std::string warnings_text(const Report& report) {
  std::string text;
  for (const WarningText& warning : report.warnings)
    text += "warning: " + warning.text + " (" + warning.advice + ")\n";
  return text;
}

}  // namespace foretoken

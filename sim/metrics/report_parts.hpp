#pragma once
#include <string>
#include <vector>

#include "sim/metrics/report.hpp"

namespace foretoken {

/// The thresholds of the collector's options against what it measured, with bootstrap intervals where the
/// context asks for them.
std::vector<SloResult> judge_slos(const Collector& collector, const ReportContext& context);
/// Everything that makes the report doubtful, the gravest first.
std::vector<WarningText> find_warnings(const Report& report, const Collector& collector,
                                       const ReportContext& context);
/// What to try next, one line; empty when nothing stands out.
std::string find_hint(const Report& report, const ReportContext& context);
/// "KV blocks", "token budget" and so on, for people.
std::string_view limit_name(LeftOut reason);
/// The reason that left requests out for the longest time; nothing when nobody was ever left out.
std::optional<LeftOut> binding_limit(const LimitTotals& limits);
/// The five shares of finished requests' time, in the order queue, prefill, decode, preempted, stalled; all
/// zero when there is none.
std::array<double, 5> time_shares(const RequestTotals& totals);
/// A share in percent: "0.4 %", "93.6 %".
std::string percent_text(double share);

}  // namespace foretoken

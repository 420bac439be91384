#include "sim/base/json.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

double milliseconds(double ps) { return ps * 1e-9; }

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json summary_json(const Summary& summary) {
  Json json =
      Json::object({{"count", summary.count}, {"excluded", summary.excluded}, {"exact", summary.exact}});
  if (summary.count == 0) return json;
  bool has_half_widths = false;
  for (std::size_t s = 0; s < kStatistics; ++s) {
    json.set(statistic_name(static_cast<Statistic>(s)), milliseconds(summary.value_ps[s]));
    has_half_widths = has_half_widths || summary.half_width_ps[s] > 0;
  }
  if (has_half_widths) {
    Json half_widths = Json::object();
    for (std::size_t s = 0; s < kStatistics; ++s)
      half_widths.set(statistic_name(static_cast<Statistic>(s)), milliseconds(summary.half_width_ps[s]));
    json.set("half_width", std::move(half_widths));
  }
  Json few = Json::array();
  for (std::size_t s = 0; s < kStatistics; ++s)
    if (!summary.has(static_cast<Statistic>(s))) few.push_back(statistic_name(static_cast<Statistic>(s)));
  if (!few.as_array().empty()) json.set("few_samples", std::move(few));
  return json;
}

template <std::size_t kCount>
Json latency_json(const std::array<Summary, kCount>& metrics) {
  Json json = Json::object();
  for (std::size_t m = 0; m < kCount; ++m)
    json.set(std::string(metric_name(static_cast<Metric>(m))) + "_ms", summary_json(metrics[m]));
  return json;
}

Json totals_json(const RequestTotals& totals) {
  return Json::object({{"offered", totals.offered},
                       {"finished", totals.finished},
                       {"refused_context", totals.refused_context},
                       {"refused_memory", totals.refused_memory},
                       {"cancelled", totals.cancelled},
                       {"unfinished", totals.unfinished},
                       {"truncated", totals.truncated},
                       {"good", totals.good},
                       {"preemptions", totals.preemptions},
                       {"swaps", totals.swaps},
                       {"prompt_tokens", totals.prompt_tokens},
                       {"prompt_tokens_admitted", totals.prompt_tokens_admitted},
                       {"prefix_hit_tokens", totals.prefix_hit_tokens},
                       {"refound_tokens", totals.refound_tokens},
                       {"recomputed_tokens", totals.recomputed_tokens},
                       {"delivered_tokens", totals.delivered_tokens},
                       {"good_tokens", totals.good_tokens}});
}

Json time_json(const RequestTotals& totals) {
  const std::array<double, 5> shares = time_shares(totals);
  return Json::object({{"queue", shares[0]},
                       {"prefill", shares[1]},
                       {"decode", shares[2]},
                       {"preempted", shares[3]},
                       {"stalled", shares[4]}});
}

Json group_json(const GroupReport& group) {
  Json throughput = Json::object({{"offered_per_s", group.offered_per_s},
                                  {"finished_per_s", group.finished_per_s},
                                  {"output_tokens_per_s", group.delivered_tokens_per_s},
                                  {"goodput", optional_number(group.goodput)}});
  const RequestTotals& totals = group.totals;
  if (totals.finished > 0) {
    const double good = static_cast<double>(totals.good) / static_cast<double>(totals.finished);
    throughput.set("goodput_req_per_s", group.finished_per_s * good);
  }
  if (totals.delivered_tokens > 0) {
    const double good =
        static_cast<double>(totals.good_tokens) / static_cast<double>(totals.delivered_tokens);
    throughput.set("goodput_tok_per_s", group.delivered_tokens_per_s * good);
  }
  if (group.finished_half_width_per_s > 0 || group.tokens_half_width_per_s > 0)
    throughput.set("half_width", Json::object({{"finished_per_s", group.finished_half_width_per_s},
                                               {"output_tokens_per_s", group.tokens_half_width_per_s},
                                               {"goodput", group.goodput_half_width}}));
  return Json::object({{"name", group.name},
                       {"requests", totals_json(totals)},
                       {"throughput", std::move(throughput)},
                       {"latency", latency_json(group.metrics)},
                       {"time_share", time_json(totals)}});
}

Json groups_json(const std::vector<GroupReport>& groups) {
  Json json = Json::array();
  for (const GroupReport& group : groups) json.push_back(group_json(group));
  return json;
}

Json steady_json(const SteadyReport& steady) {
  return Json::object(
      {{"rule", "without the first and last tenth of the time between first and last arrival"},
       {"begin_s", static_cast<double>(steady.begin_ps) * 1e-12},
       {"end_s", static_cast<double>(steady.end_ps) * 1e-12},
       {"offered", steady.offered},
       {"finished", steady.finished},
       {"offered_per_s", steady.offered_per_s},
       {"finished_per_s", steady.finished_per_s},
       {"output_tokens_per_s", steady.emitted_tokens_per_s},
       {"served_share", optional_number(steady.served_share)},
       {"goodput", optional_number(steady.goodput)},
       {"stationary", steady.is_stationary},
       {"latency", latency_json(steady.metrics)}});
}

Json slos_json(const std::vector<SloResult>& slos) {
  Json json = Json::array();
  for (const SloResult& slo : slos) {
    const double unit = slo.slo.is_latency ? 1e-9 : 1.0;
    Json entry = Json::object({{"slo", slo.slo.text},
                               {"pass", slo.pass},
                               {"unit", slo.slo.is_latency ? "ms" : "share"},
                               {"value", slo.has_value ? Json(slo.value * unit) : Json()}});
    if (slo.has_interval && slo.has_value)
      entry.set("interval", Json::array({slo.low * unit, slo.high * unit}));
    entry.set("few_samples", slo.few_samples);
    json.push_back(std::move(entry));
  }
  return json;
}

double per(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

Json limits_json(const Report& report) {
  Json json = Json::object();
  const auto busy = static_cast<double>(report.state.busy_ps);
  for (std::size_t reason = 0; reason < kLeftOutReasons; ++reason) {
    if (report.limits.steps[reason] == 0) continue;
    json.set(limit_name(static_cast<LeftOut>(reason)),
             Json::object({{"share_of_steps", per(static_cast<double>(report.limits.steps[reason]),
                                                  static_cast<double>(report.steps))},
                           {"share_of_time", per(static_cast<double>(report.limits.time_ps[reason]), busy)},
                           {"requests_mean", per(to_double(report.limits.request_ps[reason]), busy)}}));
  }
  return json;
}

Json memory_json(const Report& report) {
  const StateTotals& state = report.state;
  const auto busy = static_cast<double>(state.busy_ps);
  return Json::object({{"kv_blocks_total", state.kv_blocks_total},
                       {"kv_blocks_held_max", state.kv_held_max},
                       {"kv_blocks_held_max_at_s", seconds(state.kv_held_max_at.time_since_epoch())},
                       {"kv_blocks_held_mean", per(to_double(state.kv_held_ps), busy)},
                       {"kv_blocks_reserved_unused_mean", per(to_double(state.kv_reserved_ps), busy)},
                       {"kv_tokens_of_room_unused_mean", per(to_double(state.kv_slack_ps), busy)},
                       {"kv_blocks_cut_off_mean", per(to_double(state.kv_cut_off_ps), busy)},
                       {"swapped_blocks_out", report.work.swapped_blocks_out},
                       {"swapped_blocks_in", report.work.swapped_blocks_in}});
}

Json work_json(const Report& report) {
  const WorkTotals& work = report.work;
  const auto computed = static_cast<double>(work.computed_tokens);
  const auto recomputed = static_cast<double>(report.whole.totals.recomputed_tokens);
  return Json::object({{"steps", report.steps},
                       {"new_tokens", work.new_tokens},
                       {"computed_tokens", work.computed_tokens},
                       {"sampled_rows", work.sampled_rows},
                       {"attention_pairs", work.attention_pairs},
                       {"context_tokens_read", work.context_tokens_read},
                       {"padding_tokens", work.padding_tokens},
                       {"dead_tokens", work.dead_tokens},
                       {"wasted_tokens", work.wasted_tokens},
                       {"padding_share", per(static_cast<double>(work.padding_tokens), computed)},
                       {"dead_share", per(static_cast<double>(work.dead_tokens), computed)},
                       {"recompute_tax", per(recomputed, computed)}});
}

Json series_json(const Report& report) {
  const auto width = static_cast<double>(report.series_width_ps);
  Json kv_mean = Json::array(), kv_max = Json::array(), running = Json::array(), waiting = Json::array();
  Json busy = Json::array(), arrivals = Json::array(), finished = Json::array(), tokens = Json::array();
  Json preemptions = Json::array();
  for (const SeriesBucket& bucket : report.series) {
    kv_mean.push_back(bucket.kv_held_ps / width);
    kv_max.push_back(bucket.kv_held_max);
    running.push_back(bucket.resident_ps / width);
    waiting.push_back(bucket.waiting_ps / width);
    busy.push_back(static_cast<double>(bucket.busy_ps) / width);
    arrivals.push_back(bucket.arrivals);
    finished.push_back(bucket.finished);
    tokens.push_back(bucket.emitted_tokens);
    preemptions.push_back(bucket.preemptions);
  }
  return Json::object({{"width_s", width * 1e-12},
                       {"kv_blocks_held_mean", std::move(kv_mean)},
                       {"kv_blocks_held_max", std::move(kv_max)},
                       {"running_mean", std::move(running)},
                       {"waiting_mean", std::move(waiting)},
                       {"busy_share", std::move(busy)},
                       {"arrivals", std::move(arrivals)},
                       {"finished", std::move(finished)},
                       {"decoded_tokens", std::move(tokens)},
                       {"preemptions", std::move(preemptions)}});
}

Json result_json(const Report& report) {
  Json json = group_json(report.whole);
  json.set("begin_s", static_cast<double>(report.begin_ps) * 1e-12);
  json.set("end_s", static_cast<double>(report.end_ps) * 1e-12);
  json.set("replicates", report.replicates);
  json.set("percentiles", report.exact ? "exact" : "histogram");
  json.set("steady", steady_json(report.steady));
  json.set("slos", slos_json(report.slos));
  json.set("classes", groups_json(report.classes));
  json.set("tenants", groups_json(report.tenants));
  json.set("sources", groups_json(report.sources));
  json.set("utilisation", Json::object({{"busy_share", report.busy_share},
                                        {"mfu", optional_number(report.mfu)},
                                        {"mbu", optional_number(report.mbu)},
                                        {"running_max", report.state.resident_max},
                                        {"waiting_max", report.state.waiting_max}}));
  const auto limit = binding_limit(report.limits);
  json.set("binding_limit", limit ? Json(limit_name(*limit)) : Json(nullptr));
  json.set("limits", limits_json(report));
  json.set("memory", memory_json(report));
  json.set("work", work_json(report));
  json.set("series", series_json(report));
  Json warnings = Json::array();
  for (const WarningText& warning : report.warnings)
    warnings.push_back(Json::object(
        {{"kind", warning_name(warning.kind)}, {"text", warning.text}, {"advice", warning.advice}}));
  json.set("warnings", std::move(warnings));
  json.set("hint", report.hint);
  return json;
}

}  // namespace

Json report_json(const Report& report, const ReportContext& context) {
  return Json::object({{"schema_version", kReportSchemaVersion},
                       {"tool_version", context.tool_version},
                       {"command", context.command},
                       {"seed", context.seed},
                       {"inputs", context.inputs},
                       {"evidence", context.evidence},
                       {"config", context.config},
                       {"result", result_json(report)}});
}

}  // namespace foretoken

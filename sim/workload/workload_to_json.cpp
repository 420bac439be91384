#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

/// Division by a power of ten is exact where its product with an inexact 1e-12 is not, so that durations read
/// back the same.
double in_seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e12; }

/// Sets `key_s`, in seconds, unless the duration is without end.
void set_duration(Json& json, std::string_view key, Duration duration) {
  if (duration != kForever) json.set(std::string(key) + "_s", in_seconds(duration));
}

Json length_json(const LengthSpec& spec) {
  switch (spec.kind) {
    case LengthKind::fixed: return Json::object({{"kind", "fixed"}, {"tokens", spec.min}});
    case LengthKind::uniform:
      return Json::object({{"kind", "uniform"}, {"min", spec.min}, {"max", spec.max}});
    default:
      return Json::object({{"kind", "log_normal"},
                           {"mu", spec.mu},
                           {"sigma", spec.sigma},
                           {"min", spec.min},
                           {"max", spec.max}});
  }
}

Json arrivals_json(const ArrivalSpec& spec) {
  switch (spec.kind) {
    case ArrivalKind::gamma:
      return Json::object({{"kind", "gamma"}, {"cv", spec.cv}, {"rate_per_s", spec.rate_per_s}});
    case ArrivalKind::on_off:
      return Json::object({{"kind", "on_off"},
                           {"on_rate_per_s", spec.on_rate_per_s},
                           {"off_rate_per_s", spec.off_rate_per_s},
                           {"on_s", in_seconds(spec.on)},
                           {"off_s", in_seconds(spec.off)}});
    case ArrivalKind::closed_loop:
      return Json::object({{"kind", "closed_loop"},
                           {"concurrency", spec.concurrency},
                           {"think_s", in_seconds(spec.think)},
                           {"think_kind", spec.think_exponential ? "exponential" : "fixed"},
                           {"ramp_s", in_seconds(spec.ramp)}});
    default: return Json::object({{"kind", "poisson"}, {"rate_per_s", spec.rate_per_s}});
  }
}

Json trace_json(const TraceSpec& spec) {
  const bool detect = spec.read.format == TraceFormat::detect;
  constexpr std::string_view zero_output[] = {"by_format", "drop", "keep"};
  Json json =
      Json::object({{"path", spec.path}, {"format", detect ? "detect" : facts(spec.read.format).name}});
  if (!spec.read.columns.empty()) {
    Json columns = Json::object();
    for (const auto& [ours, theirs] : spec.read.columns) columns.set(ours, theirs);
    json.set("columns", columns);
  }
  json.set("sort", spec.read.sort);
  json.set("spread_ties", spec.read.spread_ties == SpreadTies::uniform ? "uniform" : "none");
  json.set("zero_output", zero_output[static_cast<std::size_t>(spec.read.zero_output)]);
  json.set("from_s", in_seconds(spec.from));
  set_duration(json, "to", spec.to);
  json.set("rate_scale", spec.rate_scale);
  if (spec.rate_per_s > 0.0) json.set("rate_per_s", spec.rate_per_s);
  return json;
}

Json class_json(const ClassSpec& entry, bool has_lengths) {
  Json json = Json::object({{"name", entry.name},
                            {"weight", entry.weight},
                            {"tenant", entry.tenant},
                            {"source", entry.source},
                            {"priority", entry.priority}});
  set_duration(json, "patience", entry.patience);
  set_duration(json, "cancel_after", entry.cancel_after);
  if (!has_lengths) return json;
  if (entry.lengths_trace.empty()) {
    json.set("prompt_tokens", length_json(entry.prompt_tokens));
    json.set("output_tokens", length_json(entry.output_tokens));
  } else {
    json.set("lengths_from", entry.lengths_trace);
  }
  if (entry.prefix.share > 0.0) {
    json.set("prefix", Json::object({{"share", entry.prefix.share},
                                     {"groups", entry.prefix.groups},
                                     {"tokens", entry.prefix.tokens},
                                     {"block_tokens", entry.prefix.block_tokens}}));
  }
  return json;
}

}  // namespace

Json to_json(const WorkloadSpec& spec) {
  const bool is_trace = spec.arrivals.kind == ArrivalKind::trace;
  Json json = Json::object({{"seed", static_cast<std::int64_t>(spec.seed)}});
  if (is_trace) {
    json.set("trace", trace_json(spec.trace));
  } else {
    json.set("arrivals", arrivals_json(spec.arrivals));
  }
  if (!spec.classes.empty()) {
    Json classes = Json::array();
    for (const ClassSpec& entry : spec.classes) classes.push_back(class_json(entry, !is_trace));
    json.set("classes", classes);
  }
  json.set("requests", spec.requests);
  set_duration(json, "duration", spec.duration);
  if (spec.max_new == MaxNewTokens::fixed) {
    json.set("max_new_tokens", spec.max_new_tokens);
  } else {
    json.set("max_new_tokens", spec.max_new == MaxNewTokens::exact ? "exact" : "none");
  }
  if (spec.prediction_sigma >= 0.0) json.set("prediction_sigma", spec.prediction_sigma);
  json.set("tokens_max", spec.tokens_max);
  json.set("over_long", spec.drop_over_long ? "drop" : "offer");
  return json;
}

}  // namespace foretoken

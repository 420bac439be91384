#include "sim/workload/workload_json.hpp"

#include <array>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr double kSecondsMax = 9.0e6;
constexpr double kRateMax = 1e9;
constexpr std::array<std::string_view, 3> kUnits{"_s", "_ms", "_us"};
constexpr std::array<double, 3> kUnitPicoseconds{1e12, 1e9, 1e6};

std::string with_unit(std::string_view key, std::string_view unit) { return std::string(key).append(unit); }

/// A duration as `key_s`, `key_ms`, `key_us` (numbers) or `key` (text with a unit), one of them at most.
Duration read_duration(JsonReader& reader, std::string_view key, Duration fallback) {
  int given = reader.has(key) ? 1 : 0;
  for (const std::string_view unit : kUnits) given += reader.has(with_unit(key, unit)) ? 1 : 0;
  if (given > 1)
    reader.fail(with_unit(key, "_s"), "one of " + std::string(key) + "_s, _ms, _us or text with a unit",
                "several");
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    const std::string name = with_unit(key, kUnits[i]);
    const Json* value = reader.get(name);
    if (value == nullptr || value->is_null()) continue;
    const double count = reader.number(name, 0.0, kSecondsMax * 1e12 / kUnitPicoseconds[i]);
    return Duration(static_cast<std::int64_t>(count * kUnitPicoseconds[i] + 0.5));
  }
  const Json* value = reader.get(key);
  if (value == nullptr || value->is_null()) return fallback;
  const auto duration = value->is_string() ? parse_duration_ps(value->as_string()) : std::nullopt;
  if (!duration || static_cast<double>(*duration) > kSecondsMax * 1e12) {
    reader.fail(key, "a duration as text with its unit, such as \"2 s\" or \"500 ms\"", value->describe());
  }
  return Duration(*duration);
}

std::int32_t read_tokens(JsonReader& reader, std::string_view key, std::int64_t fallback, std::int64_t low) {
  return static_cast<std::int32_t>(reader.integer(key, fallback, low, kTokensMax));
}

/// A number stands for a fixed length, text for what `parse_length` knows.
LengthSpec read_length(JsonReader& parent, std::string_view key, std::int32_t low) {
  const Json& value = parent.require(key);
  if (value.is_number()) return fixed_length(static_cast<std::int32_t>(parent.integer(key, low, kTokensMax)));
  if (!value.is_object()) parent.fail(key, "a number of tokens or an object {kind, ...}", value.describe());
  JsonReader reader = parent.child(key);
  reader.require("kind");
  const int kind = reader.choice("kind", {"fixed", "uniform", "log_normal"}, 0);
  LengthSpec spec;
  if (kind == 0) {
    spec = fixed_length(static_cast<std::int32_t>(reader.integer("tokens", low, kTokensMax)));
  } else if (kind == 1) {
    const auto min = static_cast<std::int32_t>(reader.integer("min", low, kTokensMax));
    spec = uniform_length(min, static_cast<std::int32_t>(reader.integer("max", min, kTokensMax)));
  } else {
    const std::int32_t min = read_tokens(reader, "min", 1, low);
    const std::int32_t max = read_tokens(reader, "max", kTokensMax, min);
    LengthMoments moments;
    const auto read = [&](std::string_view name, double& target, double from, double to) {
      target = reader.number(name, target, from, to);
    };
    read("mean", moments.mean, 1e-3, 1e8);
    read("sd", moments.sd, 0.0, 1e8);
    read("p50", moments.p50, 1e-3, 1e8);
    read("p99", moments.p99, 1e-3, 1e9);
    read("mu", moments.mu, -20.0, 20.0);
    read("sigma", moments.sigma, 0.0, 10.0);
    const auto found = log_normal(moments, min, max);
    if (!found) {
      reader.fail("",
                  "two facts that a log-normal distribution has: mean with sd, p50 or p99; p50 with p99; mu "
                  "with sigma",
                  value.dump());
    }
    spec = *found;
  }
  reader.finish();
  return spec;
}

ArrivalSpec read_arrivals(JsonReader& parent) {
  ArrivalSpec spec;
  JsonReader reader = parent.child("arrivals");
  reader.require("kind");
  spec.kind =
      static_cast<ArrivalKind>(1 + reader.choice("kind", {"poisson", "gamma", "on_off", "closed_loop"}, 0));
  switch (spec.kind) {
    case ArrivalKind::gamma: spec.cv = reader.number("cv", 0.01, 100.0); [[fallthrough]];
    case ArrivalKind::poisson: spec.rate_per_s = reader.number("rate_per_s", 1e-9, kRateMax); break;
    case ArrivalKind::on_off:
      spec.on_rate_per_s = reader.number("on_rate_per_s", 0.0, kRateMax);
      spec.off_rate_per_s = reader.number("off_rate_per_s", 0.0, 0.0, kRateMax);
      spec.on = read_duration(reader, "on", Duration{});
      spec.off = read_duration(reader, "off", Duration{});
      if (spec.on == Duration{}) reader.fail("", "a duration on_s above 0", "none");
      if (spec.off == Duration{}) reader.fail("", "a duration off_s above 0", "none");
      break;
    default:
      spec.concurrency = static_cast<std::int32_t>(reader.integer("concurrency", 1, 10'000'000));
      spec.think = read_duration(reader, "think", Duration{});
      spec.think_exponential = reader.choice("think_kind", {"fixed", "exponential"}, 0) == 1;
      spec.ramp = read_duration(reader, "ramp", Duration{});
  }
  reader.finish();
  return spec;
}

TraceSpec read_trace(JsonReader& parent) {
  TraceSpec spec;
  JsonReader reader = parent.child("trace");
  spec.path = reader.string("path");
  spec.read.format = static_cast<TraceFormat>(
      reader.choice("format", {"detect", "azure", "burstgpt", "mooncake", "bailian", "canonical", "csv"}, 0));
  if (const Json* columns = reader.get("columns"); columns != nullptr && !columns->is_null()) {
    if (!columns->is_object()) reader.fail("columns", "an object {ours: theirs}", columns->describe());
    JsonReader names = reader.child("columns");
    for (const auto& [ours, theirs] : columns->as_object())
      spec.read.columns.emplace_back(ours, names.string(ours));
  }
  spec.read.sort = reader.boolean("sort", false);
  spec.read.spread_ties = static_cast<SpreadTies>(reader.choice("spread_ties", {"none", "uniform"}, 0));
  spec.read.zero_output =
      static_cast<ZeroOutput>(reader.choice("zero_output", {"by_format", "drop", "keep"}, 0));
  spec.from = read_duration(reader, "from", Duration{});
  spec.to = read_duration(reader, "to", kForever);
  if (spec.from >= spec.to) reader.fail("", "a window that begins before it ends", "from_s at or after to_s");
  spec.rate_scale = reader.number("rate_scale", 1.0, 1e-9, kRateMax);
  spec.rate_per_s = reader.number("rate_per_s", 0.0, 0.0, kRateMax);
  reader.finish();
  return spec;
}

PrefixSpec read_prefix(JsonReader& parent) {
  PrefixSpec spec;
  JsonReader reader = parent.child("prefix");
  spec.share = reader.number("share", 0.0, 1.0);
  spec.groups = static_cast<std::int32_t>(reader.integer("groups", 1, 1, 10'000'000));
  spec.block_tokens = read_tokens(reader, "block_tokens", 16, 1);
  spec.tokens = static_cast<std::int32_t>(reader.integer("tokens", spec.block_tokens, kTokensMax));
  reader.finish();
  return spec;
}

/// Lengths, tenant and the like, which stand in the workload itself when there is one class only.
void read_class_members(JsonReader& reader, ClassSpec& entry, bool has_lengths) {
  entry.tenant = reader.string("tenant", "default");
  entry.source = reader.string("source", "default");
  entry.priority = static_cast<std::int32_t>(reader.integer("priority", 0, -kTokensMax, kTokensMax));
  entry.patience = read_duration(reader, "patience", kForever);
  entry.cancel_after = read_duration(reader, "cancel_after", kForever);
  if (!has_lengths) return;
  entry.lengths_trace = reader.string("lengths_from", "");
  if (entry.lengths_trace.empty()) {
    entry.prompt_tokens = read_length(reader, "prompt_tokens", 1);
    entry.output_tokens = read_length(reader, "output_tokens", 0);
  }
  if (reader.has("prefix")) entry.prefix = read_prefix(reader);
}

void read_classes(JsonReader& reader, WorkloadSpec& spec) {
  const bool has_lengths = spec.arrivals.kind != ArrivalKind::trace;
  const Json* classes = reader.get("classes");
  if (classes == nullptr || classes->is_null()) {
    if (!has_lengths) return;
    ClassSpec entry;
    read_class_members(reader, entry, true);
    spec.classes.push_back(entry);
    return;
  }
  if (!classes->is_array()) reader.fail("classes", "an array of classes", classes->describe());
  for (std::size_t i = 0; i < classes->as_array().size(); ++i) {
    JsonReader element = reader.element("classes", i);
    ClassSpec entry;
    entry.name = element.string("name");
    entry.weight = element.number("weight", 1.0, 0.0, 1e9);
    read_class_members(element, entry, has_lengths);
    element.finish();
    spec.classes.push_back(entry);
  }
}

void read_max_new(JsonReader& reader, WorkloadSpec& spec) {
  const Json* value = reader.get("max_new_tokens");
  if (value == nullptr || value->is_null()) return;
  if (value->is_number()) {
    spec.max_new = MaxNewTokens::fixed;
    spec.max_new_tokens = static_cast<std::int32_t>(reader.integer("max_new_tokens", 1, kTokensMax));
  } else {
    spec.max_new =
        reader.choice("max_new_tokens", {"none", "exact"}, 0) == 0 ? MaxNewTokens::none : MaxNewTokens::exact;
  }
}

}  // namespace

WorkloadSpec read_workload(JsonReader& reader) {
  WorkloadSpec spec;
  spec.seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0, INT64_MAX));
  const bool is_trace = reader.has("trace");
  if (is_trace == reader.has("arrivals")) {
    reader.fail("", "either \"trace\" or \"arrivals\"", is_trace ? "both" : "neither");
  }
  if (is_trace) {
    spec.trace = read_trace(reader);
    spec.arrivals.kind = ArrivalKind::trace;
  } else {
    spec.arrivals = read_arrivals(reader);
  }
  read_classes(reader, spec);
  spec.requests = reader.integer("requests", 0, 0, 0xffffffffLL);
  spec.duration = read_duration(reader, "duration", kForever);
  read_max_new(reader, spec);
  spec.prediction_sigma = reader.number("prediction_sigma", -1.0, 0.0, 10.0);
  spec.tokens_max = read_tokens(reader, "tokens_max", 0, 0);
  spec.drop_over_long = reader.choice("over_long", {"offer", "drop"}, 0) == 1;
  reader.finish();
  return spec;
}

WorkloadSpec read_workload_file(const std::string& path) {
  const Json document = Json::parse_file(path, true);
  JsonReader reader(document, path == "-" ? "standard input" : path);
  reader.get("$schema");
  reader.get("about");
  const std::string provenance = reader.string("provenance", "");
  const std::string license = reader.string("license", "");
  WorkloadSpec spec = read_workload(reader);
  spec.provenance = provenance;
  spec.license = license;
  resolve_paths(spec, std::filesystem::path(path).parent_path().string());
  return spec;
}

void resolve_paths(WorkloadSpec& spec, const std::string& folder) {
  const auto resolve = [&](std::string& path) {
    const bool relative = !path.empty() && path != "-" && std::filesystem::path(path).is_relative();
    if (relative && !folder.empty())
      path = (std::filesystem::path(folder) / path).lexically_normal().string();
  };
  resolve(spec.trace.path);
  for (ClassSpec& entry : spec.classes) resolve(entry.lengths_trace);
}

}  // namespace foretoken

#include "sim/scenario.hpp"
#include "sim/scenario_policy.hpp"

namespace foretoken {
namespace {

constexpr double kTokensLimit = 1e8;

/// An object with the keys of `fields` and no others.
Json object_schema(std::span<const Field> fields, std::string_view description) {
  Json properties = Json::object();
  for (const Field& field : fields) properties.set(field.name, field_schema(field));
  return Json::object({{"type", "object"},
                       {"description", description},
                       {"properties", properties},
                       {"additionalProperties", false}});
}

void add_property(Json& object, std::string_view name, Json schema) {
  object["properties"].set(name, std::move(schema));
}

/// A duration under its four spellings: text with a unit, or a number with the unit in the key.
void add_duration(Json& object, const std::string& name, const std::string& description) {
  add_property(object, name,
               Json::object({{"type", Json::array({"string", "null"})},
                             {"description", description + ", as text with its unit."}}));
  for (const char* unit : {"s", "ms", "us"})
    add_property(object, name + "_" + unit,
                 Json::object({{"type", Json::array({"number", "null"})},
                               {"minimum", 0},
                               {"description", description + " (" + unit + ")."}}));
}

Json length_schema(std::string_view description) {
  constexpr Field kFields[] = {
      choice_field("kind", "fixed|uniform|log_normal", "", "Distribution"),
      integer_field("tokens", "tokens", 0, kTokensLimit, "", "The length, where it is fixed"),
      integer_field("min", "tokens", 0, kTokensLimit, "", "Shortest"),
      integer_field("max", "tokens", 0, kTokensLimit, "", "Longest"),
      number_field("mean", "tokens", 1e-3, kTokensLimit, "", "Mean of a log-normal; with sd, p50 or p99"),
      number_field("sd", "tokens", 0, kTokensLimit, "", "Standard deviation"),
      number_field("p50", "tokens", 1e-3, kTokensLimit, "", "Median"),
      number_field("p99", "tokens", 1e-3, 1e9, "", "99th percentile"),
      number_field("mu", "", -20, 20, "", "Mean of the logarithm"),
      number_field("sigma", "", 0, 10, "", "Standard deviation of the logarithm"),
  };
  const Json number = Json::object({{"type", "integer"}, {"minimum", 0}});
  return Json::object({{"description", description},
                       {"anyOf", Json::array({number, object_schema(kFields, "A distribution.")})}});
}

Json arrivals_schema() {
  constexpr Field kFields[] = {
      choice_field("kind", "poisson|gamma|on_off|closed_loop", "", "Arrival process"),
      number_field("rate_per_s", "requests per second", 1e-9, 1e9, "", "Mean rate of poisson and gamma"),
      number_field("cv", "", 0.01, 100, "", "Coefficient of variation of the gaps of gamma; 1 is Poisson"),
      number_field("on_rate_per_s", "requests per second", 0, 1e9, "", "Rate of on_off in its on phases"),
      number_field("off_rate_per_s", "requests per second", 0, 1e9, "", "Rate in its off phases"),
      integer_field("concurrency", "clients", 1, 1e7, "", "Clients of closed_loop"),
      choice_field("think_kind", "fixed|exponential", "", "How the think time is drawn"),
  };
  Json schema = object_schema(kFields, "Synthetic arrivals.");
  add_duration(schema, "on", "Mean length of an on phase");
  add_duration(schema, "off", "Mean length of an off phase");
  add_duration(schema, "think", "Think time of a closed loop");
  add_duration(schema, "ramp", "Span over which its clients start");
  schema.set("required", Json::array({"kind"}));
  return schema;
}

Json trace_schema() {
  constexpr Field kFields[] = {
      text_field("path", "", "The file, relative to the scenario"),
      choice_field("format", "detect|azure|burstgpt|mooncake|bailian|canonical|csv", "detect", "Its format"),
      boolean_field("sort", "false", "Sort rows that are out of order"),
      choice_field("spread_ties", "none|uniform", "none", "What to do with rows of one arrival time"),
      choice_field("zero_output", "by_format|drop|keep", "by_format",
                   "What to do with rows without an answer"),
      number_field("rate_scale", "", 1e-9, 1e9, "1", "Arrivals come this many times as fast"),
      number_field("rate_per_s", "requests per second", 0, 1e9, "", "Mean rate to scale to"),
  };
  Json schema = object_schema(kFields, "A trace as a source of arrivals.");
  add_property(schema, "columns",
               Json::object({{"type", "object"},
                             {"description", "Columns of a plain CSV: our name to theirs."},
                             {"additionalProperties", Json::object({{"type", "string"}})}}));
  add_duration(schema, "from", "Begin of the window on the trace's own clock");
  add_duration(schema, "to", "End of the window");
  schema.set("required", Json::array({"path"}));
  return schema;
}

/// What one class of requests has; without classes it stands in the workload itself.
void add_class_properties(Json& schema) {
  constexpr Field kFields[] = {
      text_field("tenant", "default", "Tenant"),
      text_field("source", "default", "Source"),
      integer_field("priority", "", -kTokensLimit, kTokensLimit, "0", "Lower is more urgent"),
      text_field("lengths_from", "", "A trace from whose rows pairs of lengths are drawn"),
  };
  for (const Field& field : kFields) add_property(schema, field.name, field_schema(field));
  constexpr Field kPrefix[] = {
      number_field("share", "", 0, 1, "", "Share of the requests that begin with a common text"),
      integer_field("groups", "texts", 1, 1e7, "1", "Common texts"),
      integer_field("tokens", "tokens", 1, kTokensLimit, "", "Length of a common text"),
      integer_field("block_tokens", "tokens", 1, kTokensLimit, "16", "Tokens per hash block"),
  };
  add_property(schema, "prefix", object_schema(kPrefix, "Prompts that begin alike."));
  add_property(schema, "prompt_tokens", length_schema("Length of the prompt."));
  add_property(schema, "output_tokens", length_schema("Length of the answer."));
  add_duration(schema, "patience", "The client leaves when no token came this long after the arrival");
  add_duration(schema, "cancel_after", "The client leaves this long after the arrival");
}

Json workload_schema() {
  constexpr Field kFields[] = {
      integer_field("requests", "requests", 0, 4294967295.0, "0", "Offered requests at most; 0: no bound"),
      number_field("prediction_sigma", "", 0, 10, "null", "Error of a prediction of the answers' lengths"),
      integer_field("tokens_max", "tokens", 0, kTokensLimit, "0",
                    "Prompt and answer together that count as over-long"),
      choice_field("over_long", "offer|drop", "offer", "What becomes of over-long requests"),
  };
  constexpr Field kClass[] = {text_field("name", "", "Name of the class"),
                              number_field("weight", "", 0, 1e9, "1", "Its share of the requests")};
  Json kind = object_schema(kClass, "One kind of request.");
  add_class_properties(kind);
  kind.set("required", Json::array({"name"}));
  Json schema = object_schema(kFields, "What arrives: a trace, or synthetic arrivals.");
  add_property(schema, "arrivals", arrivals_schema());
  add_property(schema, "trace", trace_schema());
  add_property(schema, "classes",
               Json::object({{"type", "array"}, {"description", "A mix of requests."}, {"items", kind}}));
  add_property(
      schema, "max_new_tokens",
      Json::object({{"description", "Bound on the answer where the work states none."},
                    {"anyOf", Json::array({Json::object({{"type", "integer"}, {"minimum", 1}}),
                                           Json::object({{"enum", Json::array({"none", "exact"})}})})}}));
  add_duration(schema, "duration", "Nothing arrives at or after this");
  add_class_properties(schema);
  return schema;
}

/// One variant per preset, as each has parameters of its own.
Json engine_schema() {
  std::vector<Field> fields;
  for (const PolicyField& row : policy_fields()) fields.push_back(row.field);
  const Json sched =
      object_schema(fields, "Fields of the policy under our own names; they have the last word.");
  Json variants = Json::array();
  for (const Preset& preset : presets()) {
    std::vector<Field> parameters;
    for (const EngineParameter* parameter : preset.parameters) parameters.push_back(parameter->field);
    Json variant = object_schema(parameters, std::string(preset.description) + ".");
    add_property(variant, "preset", Json::object({{"const", preset.name}}));
    add_property(variant, "sched", Json::object({{"$ref", "#/$defs/sched"}}));
    // The default preset may go without its name.
    if (preset.name != "vllm-v1") variant.set("required", Json::array({"preset"}));
    variants.push_back(variant);
  }
  return Json::object({{"engine", Json::object({{"description", "An engine preset and its parameters."},
                                                {"oneOf", variants}})},
                       {"sched", sched}});
}

Json cost_schema() {
  Json schema = object_schema({}, "Where the price of a step comes from; one of the three.");
  add_property(schema, "profile", Json::object({{"type", "string"}, {"description", "Path of a profile."}}));
  add_property(schema, "affine", object_schema(scenario_fields("cost.affine"), "Stated coefficients."));
  add_property(schema, "roofline",
               object_schema(scenario_fields("cost.roofline"), "How far kernels stay behind the datasheet."));
  schema.set("maxProperties", 1);
  return schema;
}

}  // namespace

Json scenario_schema() {
  Json schema = Json::object(
      {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "foretoken scenario"}});
  Json body = object_schema(scenario_fields(""), "Everything a run needs.");
  const Json definitions = engine_schema();
  add_property(body, "deployment",
               object_schema(scenario_fields("deployment"), "How the model lies on devices."));
  add_property(body, "cost", cost_schema());
  add_property(body, "engine", *definitions.find("engine"));
  add_property(body, "memory", object_schema(scenario_fields("memory"), "Sizes of the pools."));
  add_property(body, "workload", workload_schema());
  add_property(body, "slo",
               Json::object({{"type", "array"},
                             {"description", "Thresholds such as \"ttft.p99<500ms\"."},
                             {"items", Json::object({{"type", "string"}})}}));
  add_property(body, "metrics", object_schema(scenario_fields("metrics"), "How a run is measured."));
  body.set("required", Json::array({"workload"}));
  for (const auto& [key, value] : body.as_object()) schema.set(key, value);
  schema.set("$defs", Json::object({{"sched", *definitions.find("sched")}}));
  return schema;
}

}  // namespace foretoken

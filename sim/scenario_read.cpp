#include <cmath>
#include <filesystem>

#include "models/profile.hpp"
#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_policy.hpp"
#include "sim/units.hpp"
#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

/// A section's rows as an object with every key.
Json read_rows(JsonReader& reader, std::string_view section) {
  Json values = Json::object();
  for (const Field& field : scenario_fields(section)) values.set(field.name, read_field(reader, field));
  return values;
}

double number_of(const Json& values, std::string_view key) { return values.find(key)->as_double(); }
std::int64_t whole_of(const Json& values, std::string_view key) { return values.find(key)->as_int64(); }
std::string text_of(const Json& values, std::string_view key) {
  const Json* value = values.find(key);
  return value->is_null() ? "" : value->as_string();
}

/// A path of the file, which is relative to the file's folder.
std::string from_folder(const std::string& path, const std::string& folder) {
  const std::filesystem::path as_path(path);
  if (folder.empty() || path == "-" || as_path.is_absolute()) return path;
  return (std::filesystem::path(folder) / as_path).lexically_normal().string();
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || std::filesystem::path(name).extension() == ".json" ||
         std::filesystem::is_directory(name);
}

/// Content of the shipped file `prefix` + name + ".json"; the InputError for an unknown name lists the names
/// there are.
Json shipped_json(JsonReader& reader, std::string_view key, const std::string& prefix,
                  const std::string& name) {
  const std::string path = prefix + name + ".json";
  if (const auto text = resource(path)) return Json::parse(*text, path, true);
  std::vector<std::string> names;
  std::string expected = "a path to a JSON file, or one of";
  for (const std::string& shipped : resource_paths(prefix)) {
    const std::string stem = shipped.substr(prefix.size());
    if (stem.find('/') != std::string::npos || !stem.ends_with(".json")) continue;
    names.push_back(stem.substr(0, stem.size() - 5));
    expected += (names.size() > 1 ? ", " : " ") + names.back();
  }
  std::string found = "\"" + name + "\"";
  if (const std::string near = nearest(name, names); !near.empty())
    found += " (did you mean \"" + near + "\"?)";
  reader.fail(key, expected, found);
}

void read_model(JsonReader& reader, const std::string& folder, Scenario& scenario) {
  if (!scenario.model.empty()) {
    scenario.shape = is_path(scenario.model)
                         ? find_shape(from_folder(scenario.model, folder), "")
                         : shape_from_hf(shipped_json(reader, "model", "models/data/", scenario.model),
                                         scenario.model, scenario.model);
  }
  if (!scenario.device.empty()) {
    scenario.sheet =
        is_path(scenario.device)
            ? find_device(from_folder(scenario.device, folder), "")
            : device_from_json(shipped_json(reader, "device", "models/data/devices/", scenario.device),
                               scenario.device);
  }
}

void read_deployment(JsonReader reader, Scenario& scenario) {
  const Json values = read_rows(reader, "deployment");
  DeploymentOptions& options = scenario.deployment;
  options.tensor_parallel = static_cast<std::int32_t>(whole_of(values, "tensor_parallel"));
  options.weight_precision = parse_precision(text_of(values, "weight_precision"), "weight_precision");
  options.kv_precision = parse_precision(text_of(values, "kv_precision"), "kv_precision");
  options.runtime_bytes = number_of(values, "runtime_gib") * kGib;
  reader.finish();
}

void read_cost(JsonReader& parent, const std::string& name, const std::string& folder, Scenario& scenario) {
  CostConfig& cost = scenario.cost;
  JsonReader reader = parent.child("cost");
  const Json* profile = reader.get("profile");
  const Json* affine = reader.get("affine");
  const Json* roofline = reader.get("roofline");
  if ((profile != nullptr) + (affine != nullptr) + (roofline != nullptr) > 1)
    parent.fail("cost", "one of \"profile\", \"affine\" and \"roofline\"", "more than one");
  if (profile != nullptr) {
    cost.kind = CostKind::profile;
    cost.profile = from_folder(reader.string("profile"), folder);
  } else if (affine != nullptr) {
    cost.kind = CostKind::affine;
    cost.affine = affine_from_json(*affine, name, "/cost/affine");
  } else {
    JsonReader section = reader.child("roofline");
    const Json values = read_rows(section, "cost.roofline");
    section.finish();
    if (!scenario.shape || !scenario.sheet)
      parent.fail("cost", "\"profile\" or \"affine\", or a model and a device to derive a roofline from",
                  "neither");
    RooflineOptions& options = cost.roofline;
    options.flops_efficiency = number_of(values, "flops_efficiency");
    options.bandwidth_efficiency = number_of(values, "bandwidth_efficiency");
    options.step_fixed_us = number_of(values, "step_fixed_us");
    options.layer_fixed_us = number_of(values, "layer_fixed_us");
    options.peer_latency_us = number_of(values, "peer_latency_us");
  }
  reader.finish();
}

void read_engine_section(JsonReader& parent, Scenario& scenario) {
  EngineContext context;
  if (scenario.shape) context.model_tokens_max = scenario.shape->max_position;
  if (scenario.sheet) {
    context.device_memory_bytes = scenario.sheet->memory_bytes;
    context.device_name = scenario.sheet->name;
  }
  JsonReader section = parent.child("engine");
  if (!scenario.shape && !section.has("max_model_len"))
    section.fail("max_model_len", "the longest sequence served, as there is no model that says it", "none");
  scenario.engine = read_engine(std::move(section), context);
  if (scenario.shape && scenario.engine.settings.model_tokens_max > scenario.shape->max_position)
    parent.child("engine").fail(
        "max_model_len", "at most the model's " + std::to_string(scenario.shape->max_position) + " tokens",
        std::to_string(scenario.engine.settings.model_tokens_max));
}

void read_memory(JsonReader& parent, Scenario& scenario) {
  JsonReader reader = parent.child("memory");
  const Json values = read_rows(reader, "memory");
  reader.finish();
  const EngineSettings& settings = scenario.engine.settings;
  DeploymentOptions& options = scenario.deployment;
  options.block_tokens = settings.policy.block_tokens;
  options.memory_utilization = settings.memory_utilization;
  options.sequences_max = settings.policy.sequences_max;
  options.batch_tokens_max =
      settings.policy.batch_tokens_max > 0 ? settings.policy.batch_tokens_max : settings.model_tokens_max;
  Capacity& capacity = scenario.capacity;
  capacity.model_tokens_max = settings.model_tokens_max;
  capacity.transfers_overlap = values.find("transfers_overlap")->as_bool();
  capacity.kv_blocks = settings.kv_blocks;
  if (const Json& stated = *values.find("kv_blocks"); !stated.is_null())
    capacity.kv_blocks = stated.as_int64();
  if (capacity.kv_blocks == 0) {
    if (!scenario.shape || !scenario.sheet)
      reader.fail("kv_blocks", "the blocks of the KV pool, as no model and device say what memory leaves",
                  "none");
    capacity.kv_blocks = plan_deployment(*scenario.shape, *scenario.sheet, options).blocks_total;
  }
  if (const Json& stated = *values.find("host_blocks"); !stated.is_null()) {
    capacity.host_blocks = stated.as_int64();
  } else if (scenario.shape) {
    const double block_bytes = kv_bytes_per_token(*scenario.shape, options.kv_precision) *
                               options.block_tokens / options.tensor_parallel;
    capacity.host_blocks = static_cast<std::int64_t>(settings.swap_gib * kGib / block_bytes);
  }
  check_policy(settings.policy, capacity, parent.place("engine"),
               [&](std::string_view field) { return written_key(scenario.engine, field); });
}

void read_slo(JsonReader& reader, Scenario& scenario) {
  const Json* list = reader.get("slo");
  if (list == nullptr) return;
  if (!list->is_array())
    reader.fail("slo", "an array of thresholds such as \"ttft.p99<500ms\"", list->describe());
  for (const Json& text : list->as_array()) {
    if (!text.is_string()) reader.fail("slo", "thresholds such as \"ttft.p99<500ms\"", text.describe());
    try {
      scenario.slo.push_back(parse_slo(text.as_string()));
    } catch (const UsageError& error) {
      throw InputError(reader.place("slo") + ": " + error.what());
    }
  }
}

void read_metrics(JsonReader reader, Scenario& scenario) {
  const Json values = read_rows(reader, "metrics");
  MetricsConfig& metrics = scenario.metrics;
  metrics.exact_requests_max = whole_of(values, "exact_requests_max");
  metrics.bootstrap_resamples = whole_of(values, "bootstrap_resamples");
  metrics.bootstrap_block = whole_of(values, "bootstrap_block");
  reader.finish();
}

void read_workload_section(JsonReader& parent, const std::string& folder, Scenario& scenario) {
  JsonReader reader = parent.child("workload");
  if (reader.has("seed"))
    reader.fail("seed", "the seed at the top level of the scenario", "one in the workload");
  if (!parent.has("workload")) parent.fail("workload", "what arrives", "none");
  scenario.workload = read_workload(reader);
  scenario.workload.seed = scenario.seed;
  resolve_paths(scenario.workload, folder);
  if (scenario.policy().order == Order::shortest_predicted && scenario.workload.prediction_sigma < 0)
    parent.fail("workload", "a prediction of the answers' lengths, as the policy orders by it", "none");
}

}  // namespace

Scenario read_scenario(const Json& document, const std::string& name, const std::string& folder) {
  if (!document.is_object()) throw input_error(name, "an object", document.describe());
  JsonReader reader(document, name);
  const Json values = read_rows(reader, "");
  Scenario scenario;
  scenario.schema = text_of(values, "$schema");
  scenario.name = text_of(values, "name");
  scenario.description = text_of(values, "description");
  scenario.model = text_of(values, "model");
  scenario.device = text_of(values, "device");
  scenario.seed = static_cast<std::uint64_t>(whole_of(values, "seed"));
  scenario.replicates = static_cast<std::int32_t>(whole_of(values, "replicates"));
  if (const Json& horizon = *values.find("horizon_s"); !horizon.is_null())
    scenario.horizon = Duration(std::llround(horizon.as_double() * 1e12));
  // Unknown keys are refused before anything is looked up, so that a typing error is reported as one.
  for (const std::string_view section :
       {"deployment", "cost", "engine", "memory", "workload", "slo", "metrics"})
    reader.get(section);
  reader.finish();
  read_model(reader, folder, scenario);
  read_deployment(reader.child("deployment"), scenario);
  read_cost(reader, name, folder, scenario);
  read_engine_section(reader, scenario);
  read_memory(reader, scenario);
  read_workload_section(reader, folder, scenario);
  read_slo(reader, scenario);
  read_metrics(reader.child("metrics"), scenario);
  return scenario;
}

}  // namespace foretoken

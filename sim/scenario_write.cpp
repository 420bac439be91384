#include "models/profile.hpp"
#include "sim/base/error.hpp"
#include "sim/scenario.hpp"
#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json cost_to_json(const CostConfig& cost) {
  if (cost.kind == CostKind::profile) return Json::object({{"profile", cost.profile}});
  if (cost.kind == CostKind::affine) return Json::object({{"affine", affine_to_json(cost.affine)}});
  const RooflineOptions& options = cost.roofline;
  return Json::object({{"roofline", Json::object({{"flops_efficiency", options.flops_efficiency},
                                                  {"bandwidth_efficiency", options.bandwidth_efficiency},
                                                  {"step_fixed_us", options.step_fixed_us},
                                                  {"layer_fixed_us", options.layer_fixed_us},
                                                  {"peer_latency_us", options.peer_latency_us}})}});
}

Json workload_to_json(const WorkloadSpec& workload) {
  Json json = to_json(workload);
  // A scenario has one seed, at its top level.
  Json::Object& members = json.as_object();
  std::erase_if(members, [](const Json::Member& member) { return member.first == "seed"; });
  return json;
}

}  // namespace

Json scenario_to_json(const Scenario& scenario) {
  Json json = Json::object();
  if (!scenario.schema.empty()) json.set("$schema", scenario.schema);
  json.set("name", scenario.name);
  json.set("description", scenario.description);
  json.set("model", text_or_null(scenario.model));
  json.set("device", text_or_null(scenario.device));
  json.set("seed", scenario.seed);
  json.set("replicates", scenario.replicates);
  json.set("horizon_s", scenario.horizon == kForever ? Json() : Json(seconds(scenario.horizon)));
  const DeploymentOptions& deployment = scenario.deployment;
  json.set("deployment", Json::object({{"tensor_parallel", deployment.tensor_parallel},
                                       {"weight_precision", precision_name(deployment.weight_precision)},
                                       {"kv_precision", precision_name(deployment.kv_precision)},
                                       {"runtime_gib", deployment.runtime_bytes / kGib}}));
  json.set("cost", cost_to_json(scenario.cost));
  json.set("engine", engine_to_json(scenario.engine));
  json.set("memory", Json::object({{"kv_blocks", scenario.capacity.kv_blocks},
                                   {"host_blocks", scenario.capacity.host_blocks},
                                   {"transfers_overlap", scenario.capacity.transfers_overlap}}));
  json.set("workload", workload_to_json(scenario.workload));
  Json slos = Json::array();
  for (const Slo& slo : scenario.slo) slos.push_back(slo.text);
  json.set("slo", slos);
  const MetricsConfig& metrics = scenario.metrics;
  json.set("metrics", Json::object({{"exact_requests_max", metrics.exact_requests_max},
                                    {"bootstrap_resamples", metrics.bootstrap_resamples},
                                    {"bootstrap_block", metrics.bootstrap_block}}));
  return json;
}

std::unique_ptr<StepCost> scenario_cost(const Scenario& scenario) {
  const CostConfig& cost = scenario.cost;
  if (cost.kind == CostKind::affine) return make_affine_cost(cost.affine);
  const DeploymentOptions& deployment = scenario.deployment;
  if (cost.kind == CostKind::profile) {
    const Profile profile = read_profile(cost.profile);
    ModelShape measured = profile.origin.shape;
    if (scenario.shape) measured.name = scenario.shape->name;
    if (scenario.shape && !(measured == *scenario.shape))
      throw input_error(cost.profile, "a profile of the model " + scenario.model,
                        "one of " + profile.origin.shape.name);
    return make_cost(profile);
  }
  RooflineOptions options = cost.roofline;
  options.tensor_parallel = deployment.tensor_parallel;
  options.weight_precision = deployment.weight_precision;
  options.kv_precision = deployment.kv_precision;
  options.block_tokens = deployment.block_tokens;
  return make_roofline_cost(*scenario.shape, *scenario.sheet, options);
}

HardwareFloor scenario_floor(const Scenario& scenario) {
  if (!scenario.shape || !scenario.sheet) return {};
  const DeploymentOptions& deployment = scenario.deployment;
  return make_floor(*scenario.shape, deployment.weight_precision, deployment.kv_precision, *scenario.sheet,
                    deployment.tensor_parallel);
}

}  // namespace foretoken

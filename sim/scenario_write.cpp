#include "models/profile.hpp"
#include "sim/base/error.hpp"
#include "sim/scenario.hpp"
#include "sim/units.hpp"
#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

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
  json.set("seed", static_cast<std::int64_t>(scenario.seed));
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

ScenarioCost scenario_cost(const Scenario& scenario) {
  const CostConfig& cost = scenario.cost;
  ScenarioCost result;
  result.shape = scenario.shape;
  if (scenario.sheet) result.limits = *scenario.sheet;
  if (cost.kind == CostKind::affine) {
    result.cost = make_affine_cost(cost.affine);
    result.evidence = "stated cost";
    return result;
  }
  if (cost.kind == CostKind::profile) {
    const Profile profile = read_profile(cost.profile);
    ModelShape measured = profile.origin.shape;
    if (scenario.shape) measured.name = scenario.shape->name;
    if (scenario.shape && !(measured == *scenario.shape))
      throw input_error(cost.profile, "a profile of the model " + scenario.model,
                        "one of " + profile.origin.shape.name);
    result.cost = make_cost(profile);
    result.limits = profile.origin.limits;
    result.shape = profile.origin.shape;
    result.evidence = std::string(grade_name(profile.origin.grade)) + " profile " +
                      profile.hash.substr(0, 12) + " of " + profile.origin.shape.name + " on " +
                      profile.origin.device;
    return result;
  }
  const DeploymentOptions& deployment = scenario.deployment;
  RooflineOptions options = cost.roofline;
  options.tensor_parallel = deployment.tensor_parallel;
  options.weight_precision = deployment.weight_precision;
  options.kv_precision = deployment.kv_precision;
  options.block_tokens = deployment.block_tokens;
  result.cost = make_roofline_cost(*scenario.shape, *scenario.sheet, options);
  result.evidence = "roofline of " + scenario.shape->name + " on " +
                    std::to_string(deployment.tensor_parallel) + " x " + scenario.sheet->name;
  return result;
}

}  // namespace foretoken

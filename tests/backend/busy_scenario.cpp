#include "tests/backend/busy_scenario.hpp"

#include "backend/live_run.hpp"
#include "backend/replay.hpp"
#include "sim/base/json.hpp"
#include "sim/base/resources.hpp"
#include "tests/catch.hpp"

namespace foretoken::testing {

ModelShape shipped_shape(const std::string& name) {
  const std::string path = "models/data/" + name + ".json";
  return shape_from_hf(Json::parse(*resource(path), path, true), path, name);
}

Scenario busy_scenario(const std::string& preset, int depth, std::uint64_t seed, bool cache, bool swap,
                       std::int64_t requests) {
  Json engine = Json::object({{"preset", preset}, {"max_model_len", 256}, {"num_gpu_blocks_override", 60}});
  Json sched = Json::object({{"sequences_max", 16}, {"depth", depth}, {"prefix_cache", cache}});
  if (swap) {
    sched.set("preempt", "swap");
    engine.set("swap_space", 0.001);
  }
  if (preset == "static") engine.set("batch_size", 8);
  engine.set("sched", sched);
  const Json lengths = Json::object({{"kind", "uniform"}, {"min", 4}, {"max", 90}});
  Json document = Json::object(
      {{"name", "busy"},
       {"seed", static_cast<std::int64_t>(seed)},
       {"model", "tiny"},
       {"cost", Json::object({{"affine", Json::object({{"step_us", 100.0}})}})},
       {"engine", engine},
       {"workload", Json::object({{"arrivals", Json::object({{"kind", "poisson"}, {"rate_per_s", 2000.0}})},
                                  {"prompt_tokens", lengths},
                                  {"output_tokens", lengths},
                                  {"requests", requests}})}});
  return read_scenario(document, "busy", "");
}

void check_replays(const Scenario& scenario, DeviceModel& model) {
  const LiveRun live = run_live(scenario, model, nullptr, nullptr);
  CHECK(live.report.whole.totals.finished == live.report.whole.totals.offered);
  for (const ReplayKind kind : {ReplayKind::whole, ReplayKind::durations}) {
    const PlanDifference difference = replay(live.recorder, scenario.policy(), scenario.capacity, kind);
    INFO(scenario.engine.settings.policy.depth << (kind == ReplayKind::whole ? " whole: " : " durations: ")
                                               << difference.text);
    CHECK(difference.equal);
  }
}

}  // namespace foretoken::testing

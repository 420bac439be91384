#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/model.hpp"
#include "backend/live_run.hpp"
#include "backend/replay.hpp"
#include "models/shape.hpp"
#include "sim/base/json.hpp"
#include "sim/base/resources.hpp"
#include "sim/scenario.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

// ThreadSanitizer slows spinning workers some twenty times, and watches threads, not policies.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t kRequests = 20;
constexpr std::uint64_t kSeeds = 1;
#else
constexpr std::int64_t kRequests = 60;
constexpr std::uint64_t kSeeds = 2;
#endif

/// A tiny model under more work than its pool holds, so that chunks, preemption and waiting all happen.
Scenario busy_scenario(const std::string& preset, int depth, std::uint64_t seed, bool cache, bool swap) {
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
                                  {"requests", kRequests}})}});
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

}  // namespace

TEST_CASE("a live run fed back makes the same plans, by both tests", "[property][live]") {
  CpuModel model(
      shape_from_hf(Json::parse(*resource("models/data/tiny.json"), "tiny", true), "tiny", "tiny"),
      ElementType::f32, 2, 1);
  for (const std::string preset : {"vllm-v1", "sarathi", "vllm-v0", "orca", "static"})
    for (const int depth : {0, 1})
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        INFO(preset << " depth " << depth << " seed " << seed);
        check_replays(busy_scenario(preset, depth, seed, false, false), model);
      }
  check_replays(busy_scenario("vllm-v1", 1, 9, true, false), model);
  check_replays(busy_scenario("vllm-v0", 0, 9, false, true), model);
}

}  // namespace foretoken

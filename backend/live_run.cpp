#include "backend/live_run.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/core/engine.hpp"
#include "sim/fleet/driver.hpp"

namespace foretoken {
namespace {

/// A run that is stopped, or ended by a fault in its trace, leaves a step to the threads; nothing it uses may
/// go before it has ended.
struct LastStep {
  explicit LastStep(Engine& engine_in) : engine(engine_in) {}
  LastStep(const LastStep&) = delete;
  LastStep& operator=(const LastStep&) = delete;
  ~LastStep() {
    if (engine.must_join()) engine.join();
  }
  Engine& engine;
};

}  // namespace

DecoderOptions decoder_options(const Scenario& scenario, std::int32_t tokens_max) {
  const Policy& policy = scenario.policy();
  DecoderOptions options;
  options.block_tokens = policy.block_tokens;
  options.kv_blocks = scenario.capacity.kv_blocks;
  // Room for swap is touched at once, so it is made only where somebody may swap.
  options.host_blocks = policy.preempt == PreemptMode::swap ? scenario.capacity.host_blocks : 0;
  options.tokens_max = tokens_max;
  options.rows = policy.batch_tokens_max > 0 ? policy.batch_tokens_max : options.tokens_max;
  options.sequences = policy.sequences_max;
  options.depth = policy.depth;
  return options;
}

LiveRun run_live(const Scenario& scenario, DeviceModel& model, Observer* watcher,
                 const std::atomic<bool>* stop, const AnswerSink& answers) {
  if (scenario.capacity.transfers_overlap)
    throw InputError("live runs copy within steps: expected serial transfers, found overlapping ones");
  const std::unique_ptr<WorkloadSource> source = make_source(scenario.workload);
  Scheduler scheduler(scenario.policy(), scenario.capacity, {.columns = true, .fast_paths = true});
  WallClock clock(stop);
  DecoderOptions live = decoder_options(scenario, scheduler.sequence_tokens_max());
  // Stopped before it began, a run makes no step, and to touch a large pool takes seconds.
  if (stop != nullptr && stop->load()) live.kv_blocks = live.host_blocks = 0;
  LiveExecutor executor(model, clock, live);
  executor.set_output_sink(answers);
  if (scenario.policy().prefix_cache)
    executor.use_block_tables([&](Slot slot) { return scheduler.block_table(slot); });
  CollectorOptions collect;
  collect.delivery = scenario.policy().delivery;
  collect.slos = resolved_slos(scenario);
  collect.block_tokens = scenario.policy().block_tokens;
  Collector collector(collect);
  LiveRun result;
  std::vector<Observer*> observers = {&collector, &result.recorder};
  if (watcher != nullptr) observers.push_back(watcher);
  ObserverList all(observers);
  Engine engine(scheduler, executor, all, {.skip_ahead = false});
  // A run that is stopped, or ended by a fault in its trace, leaves a step to the threads.
  const LastStep last_step(engine);
  Engine* const engines[] = {&engine};
  RunLimits limits;
  limits.horizon = after(Time{}, scenario.horizon);
  limits.stop = stop;
  clock.restart();
  Time end{};
  try {
    const RunResult ran = run(*source, engines, clock, nullptr, limits);
    end = ran.end;
    result.stopped = ran.stopped;
  } catch (const DeviceError& error) {
    // What was measured before is worth as much as ever.
    end = clock.now();
    result.lost = error.what();
  }
  collector.finish_run(end);
  ScenarioCost priced;
  priced.shape = scenario.shape;
  priced.evidence = "live on " + model.place();
  result.context = report_context(scenario, priced, CostCounters{}, collector);
  result.context.command = "live";
  result.context.live = true;
  result.context.source_line = source_line(scenario, *source, collector);
  result.context.names = {source->names().slo_classes, source->names().tenants, source->names().sources};
  result.report = make_report(collector, result.context);
  result.wakes = clock.wakes();
  return result;
}

}  // namespace foretoken

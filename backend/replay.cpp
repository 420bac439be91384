#include "backend/replay.hpp"

#include <algorithm>

#include "sim/core/engine.hpp"
#include "sim/fleet/driver.hpp"

namespace foretoken {
namespace {

/// The recorded arrivals, at the times the replay is given.
class RecordedSource final : public Source {
 public:
  RecordedSource(const RunRecorder& recorded, ReplayKind kind) : recorded_(recorded), kind_(kind) {}
  Time next_time() override {
    if (next_ >= recorded_.arrivals().size()) return kNever;
    const LoggedArrival& arrival = recorded_.arrivals()[next_];
    return kind_ == ReplayKind::whole ? arrival.visible : arrival.offer.request.arrival;
  }
  Offer pop() override { return recorded_.arrivals()[next_++].offer; }
  void on_end(RequestId, Time, Ending) override {}

 private:
  const RunRecorder& recorded_;
  ReplayKind kind_;
  std::size_t next_ = 0;
};

/// Steps last as long as they did. A run that was cut, or plans that differ, may ask for more steps than
/// there are: those take a millisecond, and the comparison says that there are too many.
class RecordedExecutor final : public Executor {
 public:
  RecordedExecutor(const RunRecorder& recorded, ReplayKind kind) : recorded_(recorded), kind_(kind) {}
  Window launch(const StepPlan&, Time begin) override {
    Window window;
    window.begin = begin;
    window.first = std::chrono::milliseconds(1);
    if (next_ < recorded_.steps().size()) {
      const LoggedStep& step = recorded_.steps()[next_++];
      window.first = step.first;
      if (kind_ == ReplayKind::whole && step.end() > begin) window.first = step.end() - begin;
    }
    return window;
  }
  Time complete(const StepPlan&, const Window& window) override { return window.begin; }
  Time transfer_end(const Copy&, Time begin) override { return begin; }
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}

 private:
  const RunRecorder& recorded_;
  ReplayKind kind_;
  std::size_t next_ = 0;
};

}  // namespace

PlanDifference replay(const RunRecorder& recorded, const Policy& policy, const Capacity& capacity,
                      ReplayKind kind) {
  RecordedSource source(recorded, kind);
  RecordedExecutor executor(recorded, kind);
  Scheduler scheduler(policy, capacity, {.columns = true, .fast_paths = true});
  RunRecorder again;
  Engine engine(scheduler, executor, again, {.skip_ahead = false});
  Engine* const engines[] = {&engine};
  VirtualClock clock;
  run(source, engines, clock);
  return compare_plans(recorded.steps(), again.steps());
}

}  // namespace foretoken

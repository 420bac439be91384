#include "tests/support/seeded_faults.hpp"

namespace foretoken::laws {
namespace {

/// Stands between an engine and those that watch it and lies to both.
class Saboteur final : public Executor, public Observer {
 public:
  Saboteur(const Fault& fault, Scheduler& scheduler, Audit& audit)
      : fault_(fault), scheduler_(scheduler), audit_(audit) {}

  Window launch(const StepPlan& plan, Time begin) override {
    if (fault_.meddle) fault_.meddle(scheduler_, nullptr);
    const StepPlan* shown = &plan;
    if (fault_.plan) {
      EditedPlan& edited = edited_.emplace_back(plan);
      fault_.plan(edited);
      shown = &edited.sealed();
    }
    original_ = &plan;
    shown_ = shown;
    Window window = audit_.launch(*shown, begin);
    if (fault_.window) fault_.window(window);
    return window;
  }
  Time complete(const StepPlan&, const Window& window) override { return audit_.complete(*shown_, window); }
  Time transfer_end(const Copy& copy, Time begin) override { return audit_.transfer_end(copy, begin); }
  void on_accept(Handle handle, const Offer& offer) override { audit_.on_accept(handle, offer); }
  void on_release(Handle handle) override {
    Event event;
    event.kind = Event::Kind::release;
    event.handle = handle;
    pass(event);
  }

  void on_arrival(Handle handle, const Offer& offer, Time t) override {
    Event event;
    event.kind = Event::Kind::arrival;
    event.handle = handle;
    event.offer = offer;
    event.at = t;
    pass(event);
  }
  void on_reject(const Offer& offer, Refusal why, Time t) override {
    Event event;
    event.kind = Event::Kind::reject;
    event.offer = offer;
    event.refusal = why;
    event.at = t;
    pass(event);
  }
  void on_admit(const Admission& admission, Time t) override {
    Event event;
    event.kind = Event::Kind::admit;
    event.handle = admission.request;
    event.admission = admission;
    event.at = t;
    pass(event);
  }
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override {
    Event event;
    event.kind = Event::Kind::preempt;
    event.handle = eviction.request;
    event.eviction = eviction;
    event.emitted = emitted;
    event.at = t;
    pass(event);
  }
  void on_step(const StepRecord& record) override {
    Event event;
    event.kind = Event::Kind::step;
    event.record = record;
    if (record.plan == original_) event.record.plan = shown_;
    event.at = record.end();
    pass(event);
  }
  void on_token(Handle handle, std::int32_t emitted, Time t) override {
    Event event;
    event.kind = Event::Kind::token;
    event.handle = handle;
    event.emitted = emitted;
    event.at = t;
    pass(event);
  }
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override {
    Event event;
    event.kind = Event::Kind::end;
    event.handle = handle;
    event.ending = how;
    event.emitted = emitted;
    event.at = t;
    pass(event);
  }
  void on_batch_end(Time t) override {
    Event event;
    event.kind = Event::Kind::batch_end;
    event.at = t;
    pass(event);
  }

 private:
  void pass(Event event) {
    if (fault_.invented)
      for (const Event& extra : fault_.invented(event)) tell(extra);
    const int times = fault_.event ? fault_.event(event) : 1;
    for (int i = 0; i < times; ++i) tell(event);
  }
  void tell(const Event& e) {
    switch (e.kind) {
      case Event::Kind::arrival: return audit_.on_arrival(e.handle, e.offer, e.at);
      case Event::Kind::reject: return audit_.on_reject(e.offer, e.refusal, e.at);
      case Event::Kind::admit: return audit_.on_admit(e.admission, e.at);
      case Event::Kind::preempt: return audit_.on_preempt(e.eviction, e.emitted, e.at);
      case Event::Kind::step: return audit_.on_step(e.record);
      case Event::Kind::token: return audit_.on_token(e.handle, e.emitted, e.at);
      case Event::Kind::end: return audit_.on_end(e.handle, e.ending, e.emitted, e.at);
      case Event::Kind::batch_end: return audit_.on_batch_end(e.at);
      case Event::Kind::release: return audit_.on_release(e.handle);
    }
  }

  const Fault& fault_;
  Scheduler& scheduler_;
  Audit& audit_;
  std::list<EditedPlan> edited_;
  const StepPlan* original_ = nullptr;
  const StepPlan* shown_ = nullptr;
};

/// A member that is nobody's business: an explicit instantiation may name it, and only faults do.
template <class Key, auto Member>
struct Opened {
  friend constexpr auto opened(Key) { return Member; }
};
struct PoolKey {
  friend constexpr auto opened(PoolKey);
};
struct DeferredKey {
  friend constexpr auto opened(DeferredKey);
};
struct LoadingKey {
  friend constexpr auto opened(LoadingKey);
};
struct BlocksKey {
  friend constexpr auto opened(BlocksKey);
};
template struct Opened<PoolKey, &Scheduler::pool_>;
template struct Opened<DeferredKey, &Scheduler::deferred_blocks_>;
template struct Opened<LoadingKey, &Scheduler::loading_blocks_>;
template struct Opened<BlocksKey, &PrefixCache::blocks_>;

}  // namespace

EditedPlan::EditedPlan(const StepPlan& original)
    : plan(original),
      chunks(original.chunks.begin(), original.chunks.end()),
      decodes(original.decodes.begin(), original.decodes.end()),
      admissions(original.admissions.begin(), original.admissions.end()),
      evictions(original.evictions.begin(), original.evictions.end()) {}

const StepPlan& EditedPlan::sealed() {
  plan.chunks = chunks;
  plan.decodes = decodes;
  plan.admissions = admissions;
  plan.evictions = evictions;
  return plan;
}

std::string breach_of(const Setup& given, const Fault& fault) {
  Setup setup = given;
  setup.scheduler.columns = true;
  Setup believed = setup;
  if (fault.believed) fault.believed(believed);
  try {
    Stage stage(believed);
    Audit audit(setup, stage.scheduler, stage.executor, &stage.source);
    Saboteur saboteur(fault, stage.scheduler, audit);
    Engine engine(stage.scheduler, saboteur, saboteur, setup.engine);
    Engine* const engines[] = {&engine};
    VirtualClock clock;
    const std::unique_ptr<Source> around = fault.source ? fault.source(stage.source) : nullptr;
    RunResult result = foretoken::run(around ? *around : stage.source, engines, clock);
    if (fault.meddle) fault.meddle(stage.scheduler, &result);
    audit.finish(result);
  } catch (const Broken& broken) {
    return broken.what();
  }
  return "";
}

EventLog log_with(const Setup& setup, const std::function<std::unique_ptr<Executor>(Executor&)>& made) {
  Stage stage(setup);
  const std::unique_ptr<Executor> executor = made(stage.executor);
  EventLog log;
  LAW(stage.run(*executor, log).drained);
  return log;
}

void leak_block(Scheduler& scheduler, bool booked) {
  (scheduler.*opened(PoolKey{})).take_many(1);
  if (booked) ++(scheduler.*opened(DeferredKey{}));
}

void leak_host_block(Scheduler& scheduler) {
  (scheduler.*opened(PoolKey{})).host_take(1);
  ++(scheduler.*opened(LoadingKey{}));
}

bool overcount_references(Scheduler& scheduler) {
  for (auto& block : (scheduler.*opened(PoolKey{})).cache()->*opened(BlocksKey{}))
    if (block.references > 0) {
      ++block.references;
      return true;
    }
  return false;
}

}  // namespace foretoken::laws

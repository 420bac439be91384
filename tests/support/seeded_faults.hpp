#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/audit.hpp"

namespace foretoken::laws {

/// A plan with its rows, free to be changed.
struct EditedPlan {
  explicit EditedPlan(const StepPlan& original);
  /// The plan, made of the rows as they are now.
  const StepPlan& sealed();

  StepPlan plan;
  std::vector<Chunk> chunks;
  std::vector<DecodeRow> decodes;
  std::vector<Admission> admissions;
  std::vector<Eviction> evictions;
};

/// One call on its way from an engine to whoever watches it.
struct Event {
  enum class Kind { arrival, reject, admit, preempt, step, token, end, batch_end, release };
  Kind kind{};
  Handle handle = kNoHandle;
  Offer offer;
  Refusal refusal{};
  Admission admission;
  Eviction eviction;
  StepRecord record;
  std::int32_t emitted = 0;
  Ending ending{};
  Time at{};
};

/// What is wrong in a run; only what is set is wrong. The audit is always told of the setup as it should be.
struct Fault {
  /// The scheduler, the source and the prices go by this changed setup.
  std::function<void(Setup&)> believed;
  /// Changes a plan between the engine and the audit.
  std::function<void(EditedPlan&)> plan;
  /// Changes what the engine hears of a launch after the audit has heard it.
  std::function<void(Window&)> window;
  /// Changes an event on its way and says how often it is told: 0 loses it, 2 doubles it.
  std::function<int(Event&)> event;
  /// Events to be told before this one.
  std::function<std::vector<Event>(const Event&)> invented;
  /// Stands before the source.
  std::function<std::unique_ptr<Source>(Source&)> source;
  /// Reaches into the scheduler before each launch; before the last look, `result` is not null.
  std::function<void(Scheduler&, RunResult* result)> meddle;
};

/// What the audit says of a run with that fault: which law broke, where and with which values. Empty: none.
std::string breach_of(const Setup& setup, const Fault& fault = {});

/// The log of a run whose executor is `made`.
EventLog log_with(const Setup& setup, const std::function<std::unique_ptr<Executor>(Executor&)>& made);

/// Passes everything on; the base of executors with a fault.
class ExecutorAround : public Executor {
 public:
  explicit ExecutorAround(Executor& inner) : inner_(inner) {}
  Window launch(const StepPlan& plan, Time begin) override { return inner_.launch(plan, begin); }
  Time complete(const StepPlan& plan, const Window& window) override { return inner_.complete(plan, window); }
  Time transfer_end(const Copy& copy, Time begin) override { return inner_.transfer_end(copy, begin); }
  void on_accept(Handle handle, const Offer& offer) override { inner_.on_accept(handle, offer); }
  void on_release(Handle handle) override { inner_.on_release(handle); }

 protected:
  Executor& inner_;
};

/// Passes everything on; the base of sources with a fault.
class SourceAround : public Source {
 public:
  explicit SourceAround(Source& inner) : inner_(inner) {}
  Time next_time() override { return inner_.next_time(); }
  Offer pop() override { return inner_.pop(); }
  void on_end(RequestId id, Time t, Ending how) override { inner_.on_end(id, t, how); }

 protected:
  Source& inner_;
};

/// Takes a block of the scheduler's pool that nobody will give back; with `booked`, in books that agree.
void leak_block(Scheduler& scheduler, bool booked);
/// Takes a block of the host pool in the same way.
void leak_host_block(Scheduler& scheduler);
/// Counts one user too many of a block in the prefix cache; false when no block has a user.
bool overcount_references(Scheduler& scheduler);

}  // namespace foretoken::laws

#pragma once
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "sim/core/executor.hpp"
#include "sim/core/observer.hpp"
#include "sim/core/request.hpp"
#include "sim/core/scheduler.hpp"
#include "sim/core/tick_wheel.hpp"

namespace foretoken {

/// How an engine runs its scheduler.
struct EngineOptions {
  /// Take identical decode steps together; off, one step at a time, which gives the same results.
  bool skip_ahead = true;
};

/// A request's end, for the source that asked for it.
struct Ended {
  RequestId id{};
  Time at{};
  Ending how{};
};

/// One replica as a state machine over events: it has no loop, no clock and no thread. A driver calls, at
/// each time, `land`, then `submit` for the arrivals of that time, then `decide`; time never goes back. The
/// engine alone knows how long the answers are.
class Engine {
 public:
  Engine(Scheduler& scheduler, Executor& executor, Observer& observer, EngineOptions options = {});

  /// When something happens next without anybody calling `submit`; kNever when nothing will, or when only
  /// `join` can tell.
  Time next_event() const;
  /// A step is running on a device, and only waiting for it tells when it ends.
  bool must_join() const { return flight_.plan != nullptr && !flight_.window.end_known; }
  /// Waits for that step; returns when it ended, by the executor's clock.
  Time join();
  /// Takes in what is due at `t`: ends of steps, of transfers, of patience.
  void land(Time t);
  /// A request arrives at `t`; the next plan sees it. False when the door refused it.
  bool submit(const Offer& offer, Time t);
  /// Plans and launches at `t`, if it is time to.
  void decide(Time t);

  /// Endings since the last call, in order; the driver passes them on to the source.
  std::span<const Ended> endings() const { return endings_; }
  void clear_endings() { endings_.clear(); }
  /// Nothing runs, waits or moves.
  bool is_idle() const { return flight_.plan == nullptr && scheduler_.alive() == 0 && transfers_.empty(); }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  struct Truth {
    RequestId id{};
    std::int32_t output_tokens = 0;
    std::int32_t prompt_tokens = 0;
    std::int32_t emitted = 0;       // outside lock-step
    std::int64_t emitted_base = 0;  // in lock-step: emitted = committed tick + base
    bool in_lock_step = false;
    bool alive = false;
  };
  struct Flight {
    StepPlan* plan = nullptr;
    Window window;
    std::int64_t repeats = 1;    // how many will run
    std::int64_t committed = 0;  // of those, how many are accounted
    bool planned_next = false;   // depth 1: the step after it has been decided
    Time end{};                  // valid when known
  };
  struct Deadline {
    Time at{};
    RequestId id{};
    Handle handle{};
    bool only_before_first_token = false;
    friend bool operator>(const Deadline& a, const Deadline& b) {
      return a.at != b.at ? a.at > b.at : a.id > b.id;
    }
  };
  struct Transfer {
    Time at{};
    Copy copy;
  };

  // `inline`: called in one file only, so that no copy is kept for others.
  inline std::int64_t repeats_allowed(const StepPlan& plan) const;
  Time plan_time() const { return flight_.window.end_after(flight_.repeats - depth_); }
  void cut(Time t);
  inline void launch(StepPlan& plan, Time t);
  inline void apply(const StepPlan& plan, Time t);
  void apply_stepless(const StepPlan& plan, Time t);
  void commit(std::int64_t repeats, bool step_done);
  inline void report(std::int64_t repeats, std::int64_t repeat_first);
  inline void emit_chunks(Time t);
  void finish(Handle handle, Ending how, Time t);
  inline void drain_released();
  inline void plan_next(Time t);
  inline void settle_due(Time t);
  void start_at(Time t);
  std::int32_t emitted(const Truth& truth) const;

  Scheduler& scheduler_;
  Executor& executor_;
  Observer& observer_;
  EngineOptions options_;
  std::int32_t depth_;

  std::vector<Truth> truth_;  // by handle
  TickWheel ends_;            // by handle: the tick of the last token
  std::int64_t committed_tick_ = 0;
  Flight flight_;
  StepPlan* pending_ = nullptr;  // depth 1: decided, not yet launched
  bool changed_since_plan_ = false;
  Time wake_ = kNever;
  std::priority_queue<Deadline, std::vector<Deadline>, std::greater<>> deadlines_;
  std::vector<Transfer> transfers_;
  std::vector<Handle> ended_;
  std::vector<Ended> endings_;
};

}  // namespace foretoken

#pragma once
#include <cstdint>

#include "sim/core/step.hpp"
#include "sim/core/time.hpp"

namespace foretoken {

/// A step, or a run of identical decode steps, under way. Repeat j (from 0) lasts `first + j * growth`.
struct Window {
  Time begin{};
  Duration first{};
  Duration growth{};
  std::int64_t repeats_max = 1;
  /// False for a device that is running the step right now: only `complete` will tell.
  bool end_known = true;

  /// When `repeats` of them are done: a closed form, equal to the loop.
  Time end_after(std::int64_t repeats) const {
    return begin + first * repeats + growth * (repeats * (repeats - 1) / 2);
  }
};

/// Prices plans or runs them; only it knows which. It decides nothing.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Starts the plan's step at `begin`. A simulated window may be repeated up to its `repeats_max` (at most
  /// the plan's); a live one is a single step that is running when this returns, or will be run by
  /// `complete`.
  virtual Window launch(const StepPlan& plan, Time begin) = 0;
  /// Waits for a launched window whose end was not known and returns when it ended, by the executor's clock.
  /// Called at most once per launch.
  virtual Time complete(const StepPlan& plan, const Window& window) = 0;
  /// When copies that overlap with steps, begun at `begin`, have ended. Not asked
  /// about serial copies, which are part of the step.
  virtual Time transfer_end(const Copy& copy, Time begin) = 0;
  /// A request came through the door (it has this handle from now on): a live executor makes its prompt here.
  virtual void on_accept(Handle handle, const Offer& offer) = 0;
  /// A request's life ended; its slot, if any, may be reused by the plans made from now on.
  virtual void on_release(Handle handle) = 0;
};

/// Where the time comes from: a simulated clock jumps, a wall clock waits.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Returns at `t` or, on a wall clock, as soon after it as it can. The turn is accounted at `t` itself.
  virtual void wait_until(Time t) = 0;
};

}  // namespace foretoken

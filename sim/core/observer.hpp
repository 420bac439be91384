#pragma once
#include <cstdint>

#include "sim/core/executor.hpp"
#include "sim/core/request.hpp"
#include "sim/core/step.hpp"
#include "sim/core/time.hpp"

namespace foretoken {

/// One or more identical steps that have ended: repeat j (from 0) of this record lasted `first + j * growth`.
struct StepRecord {
  const StepPlan* plan = nullptr;
  Time begin{};
  Duration first{};
  Duration growth{};
  std::int64_t repeats = 1;
  /// Position of the first of these repeats in the plan's window, from 0: contexts grew by that much since
  /// the plan was made.
  std::int64_t repeat_first = 0;
  /// Tokens that the lock-step rows emit in each repeat: the plan's decodes less the wasted rows.
  std::int32_t decode_emissions = 0;
  std::int32_t resident = 0;
  std::int32_t waiting = 0;
  std::int32_t swapped = 0;
  /// Memory at the end of the last repeat, before releases.
  KvUse kv;

  Time end() const { return begin + first * repeats + growth * (repeats * (repeats - 1) / 2); }
};

/// Watches a run. Calls come in the order of time; at one time: arrivals, what a finished step brings
/// (on_step, then on_token for sampled chunks, then on_end), then what the next plan decides (on_admit,
/// on_preempt). Lock-step rows emit one token per on_step in which they take part, so that a decode step
/// costs the same at every batch size: a row takes part from the step after the on_token of the chunk with
/// which it entered.
class Observer {
 public:
  virtual ~Observer() = default;
  /// Came through the door and waits from `t` on.
  virtual void on_arrival(Handle handle, const Offer& offer, Time t) = 0;
  /// The door refused the request; it never had a handle.
  virtual void on_reject(const Offer& offer, Refusal why, Time t) = 0;
  /// Became resident; the step in which it does begins at `t` at the earliest.
  virtual void on_admit(const Admission& admission, Time t) = 0;
  /// Gave up its slot. `emitted` tokens are kept.
  virtual void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) = 0;
  virtual void on_step(const StepRecord& record) = 0;
  /// A plan without a step was carried out at `t`: whoever leaves lock-step by it has left, as others do with
  /// the record of a step. Its evictions have been told.
  virtual void on_stepless(const StepPlan&, Time) {}
  /// A sequence emitted a token outside lock-step: its first one, or the first after an interruption.
  /// `emitted` counts it.
  virtual void on_token(Handle handle, std::int32_t emitted, Time t) = 0;
  /// The life ended at `t`; `emitted` tokens were made in all. The handle is free afterwards.
  virtual void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) = 0;
  /// The last sequence of a batch ended: what `batch_end` delivery holds back is delivered now.
  virtual void on_batch_end(Time t) = 0;
};

}  // namespace foretoken

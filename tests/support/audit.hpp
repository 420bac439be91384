#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "tests/support/stage.hpp"

namespace foretoken::laws {

/// Stands between an engine and its executor and watches as its observer, too. It keeps books of its own,
/// from plans and events alone, and breaks the test when they and the laws disagree: lifecycle, conservation,
/// budget, caps, places, order, progress. Needs a scheduler with columns.
class Audit final : public Executor, public Observer {
 public:
  /// `source` tells which arrivals are due; null when the driver reads another one.
  Audit(const Setup& setup, const Scheduler& scheduler, Executor& priced, ListSource* source);

  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  Time transfer_end(const Copy& copy, Time begin) override;
  void on_accept(Handle handle, const Offer& offer) override { priced_.on_accept(handle, offer); }
  void on_release(Handle handle) override;

  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission& admission, Time t) override;
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override;
  void on_step(const StepRecord& record) override;
  void on_token(Handle handle, std::int32_t emitted, Time t) override;
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_batch_end(Time t) override;

  /// The laws of a finished run: nobody is lost, nothing is held.
  void finish(const RunResult& result);
  /// Integral of the number of requests in the system over time, in request picoseconds, and the sum of their
  /// times in it: Little's law as an identity.
  std::int64_t request_time() const { return request_time_; }
  std::int64_t life_time() const { return life_time_; }
  /// Evictions seen.
  std::int64_t preemptions() const { return preemptions_; }

 private:
  enum class Where { waiting, resident, swapped, gone };
  struct Life {
    Offer offer;
    RequestId id{};
    std::int32_t limit = 0;   // tokens it may emit, as far as the scheduler knows
    std::int32_t output = 0;  // tokens it will emit
    std::int32_t emitted = 0;
    std::int32_t computed = 0;
    Where place = Where::gone;
    Slot slot = kNoSlot;
    std::int64_t blocks = 0;
    std::uint64_t admitted = 0;
    bool ever_admitted = false;
    bool evicted_since_launch = false;
    bool evicted_before = false;
    bool token_due = false;
    Time loading_until{};
    std::int32_t overtaken = 0;
    std::int32_t evictions = 0;  // since anybody got a token or left
    std::int64_t given_up = 0;   // blocks that its last eviction freed
    Time deadline = kNever;
    std::int64_t queue_rank = 0;
  };
  struct Flight {
    const StepPlan* plan = nullptr;
    Window window;
    std::int64_t reported = 0;
    std::vector<RequestId> decodes;
    std::vector<RequestId> chunks;
    Time first_arrival_within = kNever;
  };
  struct Moving {
    Time until{};
    std::int64_t device_blocks = 0;
    std::int64_t host_blocks = 0;
  };

  void clock(Time t);
  Life& life(Handle handle) { return lives_[static_cast<std::size_t>(ids_[index(handle)])]; }
  std::int32_t known(const Life& life) const { return life.offer.request.prompt_tokens + life.emitted; }
  std::int64_t blocks_of(std::int64_t tokens) const;
  bool is_exact() const { return policy_.depth == 0; }

  // audit_plan.cpp: what a plan must keep.
  void check_chunk(const StepPlan& plan, const Chunk& chunk, std::set<Slot>& slots);
  void check_decodes(const StepPlan& plan, std::set<Slot>& slots);
  void check_totals(const StepPlan& plan) const;
  void check_forms(const StepPlan& plan) const;
  void check_memory(const StepPlan& plan);
  void check_table(const Life& life, std::map<std::int32_t, std::vector<std::uint64_t>>& content) const;
  void check_reasons(const StepPlan& plan) const;
  void check_evictions(const StepPlan& plan) const;
  void check_work_conserved(const StepPlan& plan) const;
  void check_arrivals(Time begin) const;
  std::int64_t held_blocks(Time begin) const;
  const Life* head_of_queue() const;
  bool before_in_queue(const Life& a, const Life& b) const;
  std::int64_t order_key(const Life& life) const;
  std::int64_t admission_blocks(std::int32_t known, std::int32_t after_step, std::int32_t limit,
                                bool taken) const;
  // audit_events.cpp
  void check_victim(const Life& victim) const;
  void progress();
  std::int64_t steps_bound() const;
  void check_queue_order(const Life& admitted);
  void check_record(const StepRecord& record) const;

  const Setup& setup_;
  const Policy& policy_;
  const Scheduler& scheduler_;
  Executor& priced_;
  ListSource* source_;
  std::int32_t tokens_max_ = 0;
  std::int64_t usable_ = 0;
  std::int64_t watermark_ = 0;

  std::vector<Life> lives_;        // by id
  std::vector<std::int64_t> ids_;  // by handle
  std::map<Slot, RequestId> owners_;
  std::vector<RequestId> dead_;  // ended, kept until their batch ends
  std::vector<Moving> moving_;
  std::set<std::size_t> in_use_;  // handles not yet released
  Flight flight_;
  Time now_{};
  Time end_of_last_{};
  Time busy_from_{};  // somebody has been there since then
  Time last_decision_{};
  std::uint64_t next_number_ = 0;
  std::uint64_t admissions_ = 0;
  std::int64_t last_rank_ = 0;
  std::int64_t first_rank_ = 0;
  std::int64_t steps_without_progress_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t rejected_ = 0, ended_ = 0;
  std::int64_t alive_ = 0;
  std::int64_t request_time_ = 0;
  std::int64_t life_time_ = 0;
};

/// Runs the setup under audit and returns the log of it.
EventLog audited(const Setup& setup);

}  // namespace foretoken::laws

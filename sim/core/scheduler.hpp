#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/kv_pool.hpp"
#include "sim/core/lock_step.hpp"
#include "sim/core/policy.hpp"
#include "sim/core/request.hpp"
#include "sim/core/rules.hpp"
#include "sim/core/step.hpp"
#include "sim/core/tick_wheel.hpp"
#include "sim/core/waiting_queue.hpp"

namespace foretoken {

/// What a scheduler produces beside decisions, and how.
struct SchedulerOptions {
  /// Fill in StepPlan::decodes: needed by executors that run rows, and by plan hashes.
  bool columns = false;
  /// Treat lock-step rows as aggregates where that is exact; off, every resident is walked in every step.
  bool fast_paths = true;
};

/// The door's answer.
struct Acceptance {
  Handle handle = kNoHandle;
  Refusal refusal = Refusal::none;
};

/// Decides, step by step, which tokens of which sequences are computed. It knows no cost, no clock, no true
/// output length; a simulated and a live run drive the very same object. Each request has known tokens
/// (prompt and emitted ones) and computed tokens; a step hands out tokens so that computed catches up,
/// whatever the reason it lags: a new prompt, a chunk, a recomputation.
class Scheduler {
 public:
  Scheduler(const Policy& policy, const Capacity& capacity, SchedulerOptions options = {});

  /// Takes a request in, or refuses one that could never be served. Visible to the next plan.
  Acceptance submit(const Request& request);
  /// Plans the next step: a step that moves at least one token, or a reason to idle. Tokens are accounted as
  /// computed at once, which is what allows to plan a step before the previous one has returned.
  Decision plan(Time now);
  /// The step planned last is run `repeats` times in all.
  void extend(std::int64_t repeats);
  /// A step has ended (or, with `step_done` false, all its repeats but the last); these sequences ended with
  /// it.
  void commit(bool step_done, std::span<const Handle> ended);
  /// The request's client has left. Not to be called for a request that has ended.
  void cancel(Handle handle);
  /// An overlapping transfer has ended.
  void transfer_done(const Copy& copy);

  /// Handles whose slot and number may be reused from now on; cleared by `clear_released`.
  std::span<const Handle> released() const { return released_; }
  void clear_released() { released_.clear(); }
  /// True once after the last sequence of a batch ended (release_at_batch_end).
  bool take_batch_end() { return std::exchange(batch_ended_, false); }

  const Policy& policy() const { return policy_; }
  const Capacity& capacity() const { return capacity_; }
  /// Longest sequence that is served: the model's limit, or what the pool holds if that is less.
  std::int32_t sequence_tokens_max() const { return tokens_max_; }
  std::int32_t resident() const { return resident_; }
  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t swapped() const { return static_cast<std::int64_t>(swapped_.size()); }
  /// Requests that are waiting, resident or swapped.
  std::int64_t alive() const { return alive_; }
  KvUse kv_use() const;
  /// The request behind a handle.
  const Request& request(Handle handle) const { return sequences_[index(handle)].facts; }
  /// Device blocks of a slot; only with the prefix cache on, since otherwise the backend numbers blocks.
  std::span<const std::int32_t> block_table(Slot slot) const { return pool_.cache()->table(slot); }
  /// Recounts everything from the rows; for tests. True when all totals agree.
  bool audit() const;

 private:
  enum class Residence : std::uint8_t { waiting, resident, swapped, gone };
  enum class RowState : std::uint8_t { free, catching_up, lock_step, draining, dead, loading };
  struct Sequence {
    Request facts;
    std::int32_t emitted = 0;  // valid outside lock-step; tokens of steps in flight included
    std::int32_t context = 0;  // of a swapped sequence
    std::int32_t blocks = 0;   // of a swapped sequence
    std::int32_t overtaken = 0;
    Residence residence = Residence::gone;
    Slot slot = kNoSlot;
    std::int64_t ticket = 0;
    std::uint64_t evicted_in = kNoPlan;
    std::vector<std::uint64_t> hashes;  // own copy of the prompt's hashes
    std::vector<std::uint64_t> chain;   // identities of full blocks, as far as computed
  };
  struct Row {
    Handle request = kNoHandle;
    RowState state = RowState::free;
    std::int32_t computed = 0;  // valid outside lock-step
    std::int32_t known = 0;     // valid outside lock-step
    std::int64_t blocks = 0;    // held; for growing rows valid outside lock-step
    std::uint64_t admitted = 0;
    std::uint64_t granted_in = kNoPlan;
    std::uint64_t entered_in = 0;        // the plan with which it entered lock-step
    std::uint64_t drained_in = kNoPlan;  // the plan that decodes its last token in lock-step
    std::uint64_t left_out_in = 0;       // the last attempt at a plan that left it out
    LeftOut left_out{};                  // and why
  };
  struct ListEntry {
    Slot slot{};
    std::uint64_t admitted = 0;
  };
  struct Deferred {
    std::uint64_t until = 0;
    Slot slot = kNoSlot;
    std::int64_t blocks = 0;
    Handle handle = kNoHandle;
  };
  struct Buffers {
    StepPlan plan;
    std::vector<Chunk> chunks;
    std::vector<DecodeRow> decodes;
    std::vector<Admission> admissions;
    std::vector<Eviction> evictions;
    std::vector<Copy> copies;
    std::vector<LockStepChange> changes;
  };
  struct Fit {
    std::int32_t known = 0;
    std::int32_t hit = 0;
    std::int32_t tokens = 0;
    std::int64_t blocks = 0;  // to take now
    bool fits = false;
    LeftOut reason{};
  };
  static constexpr std::uint64_t kNoPlan = ~std::uint64_t{0};

  // `inline`: called in one file only, so that no copy is kept for others.
  // scheduler_plan.cpp: the phases of a step.
  inline void begin_plan(Time now);
  inline void run_phase(Phase phase);
  inline void grant_residents(Phase phase);
  inline bool grant_fast(Phase phase);
  void walk_residents(Phase phase);
  /// A lock-step row whose next token neither opens a block nor fills one.
  inline bool is_inside_block(Slot slot) const;
  bool grant_walked(Slot slot, std::int32_t tokens);
  bool make_room(Slot beneficiary, std::int64_t blocks);
  void grant(Slot slot, std::int32_t tokens);
  std::int32_t capped(std::int32_t debt) const;
  inline void complete_rows();
  inline void finish_plan();
  inline std::int64_t repeats_allowed() const;
  inline Decision decide();

  // scheduler_admit.cpp: who becomes resident.
  void admit_waiting();
  inline bool may_join();
  inline Fit fit(const Sequence& sequence) const;
  inline void admit(const WaitingQueue::Entry& entry, const Fit& fit);
  void swap_in();
  void count_left_out(LeftOut reason, std::int64_t requests);
  void prepare_chain(Sequence& sequence, std::int32_t blocks) const;
  std::uint64_t content_hash(const Sequence& sequence, std::int32_t position) const;
  Slot open_slot(Handle handle);

  // scheduler.cpp: rows and memory.
  std::int64_t held_blocks(Slot slot) const;
  std::int32_t context_of(Slot slot) const;
  void enter_lock_step(Slot slot);
  void leave_lock_step(Slot slot);
  void leave_out(Slot slot, LeftOut reason);
  void drain(Slot slot);
  Slot choose_victim() const;
  void evict(Slot slot);
  void refund(Slot slot);
  inline void release_row(Slot slot, bool blocks_move, Handle freed);
  inline void settle(const Deferred& deferred);
  void end(Handle handle);
  inline void bury(Slot slot);
  void seal_full_blocks(Slot slot, std::int32_t before, std::int32_t after);
  void unseal_full_blocks(Slot slot, std::int32_t before, std::int32_t after);
  void forget_catching(Slot slot);
  void enqueue(Handle handle, bool front);
  void insert_catching(Slot slot);

  Policy policy_;
  Capacity capacity_;
  SchedulerOptions options_;
  KvPool pool_;
  std::int32_t tokens_max_ = 0;
  std::int64_t watermark_blocks_ = 0;
  std::unique_ptr<OrderRule> order_rule_;
  std::vector<std::unique_ptr<AdmitRule>> admit_rules_;
  std::unique_ptr<VictimRule> victim_rule_;
  std::vector<PhaseRule> program_;

  std::vector<Sequence> sequences_;
  std::vector<Handle> free_handles_;
  std::vector<Row> rows_;
  std::vector<Slot> free_slots_;
  WaitingQueue waiting_;
  std::deque<Handle> swapped_;
  std::vector<ListEntry> order_;   // residents by admission; entries of rows that left are skipped
  std::vector<Slot> catching_up_;  // by admission
  std::vector<Slot> dead_;
  LockStep lock_step_;
  TickWheel limits_;  // by slot: the tick of the last token that a row may emit
  std::vector<Deferred> deferred_;
  std::vector<Handle> released_;
  std::vector<WaitingQueue::Entry> set_aside_;

  std::int32_t resident_ = 0;
  std::int32_t draining_ = 0;
  std::int32_t loading_ = 0;
  std::int64_t alive_ = 0;
  std::int64_t deferred_blocks_ = 0;
  std::int64_t moving_blocks_ = 0;   // on their way to the host
  std::int64_t loading_blocks_ = 0;  // of the host, on their way back
  std::int64_t other_context_ = 0;   // tokens of residents outside lock-step
  std::int64_t dead_context_ = 0;
  std::int64_t untouched_blocks_ = 0;  // held, no token yet
  std::uint64_t admitted_ = 0;
  std::uint64_t attempt_ = 0;
  std::uint64_t next_plan_ = 0;
  std::uint64_t committed_ = 0;
  std::uint64_t lock_step_granted_in_ = kNoPlan;
  std::int64_t first_ticket_ = 0;
  std::int64_t last_ticket_ = 0;
  bool batch_ended_ = false;
  bool owes_blocks_ = false;  // a resident waits for blocks that others have given up
  bool owed_blocks_ = false;  // so it was in the plan before this one

  // The plan being made.
  Buffers buffers_[2];
  Buffers* now_planning_ = &buffers_[0];
  Time now_{};
  std::int64_t budget_ = 0;
  bool lock_step_granted_ = false;  // all lock-step rows got their token
  bool granting_ = false;           // between the start of a plan and its end
  std::int32_t resident_at_start_ = 0;
  Time wake_ = kNever;
  bool join_refused_ = false;
  bool waiting_told_ = false;  // why they were left out
  LeftOut left_swapped_{};     // why the swapped were
};

}  // namespace foretoken

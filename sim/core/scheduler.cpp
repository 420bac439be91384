#include "sim/core/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.hpp"
#include "sim/core/random.hpp"

namespace foretoken {

Scheduler::Scheduler(const Policy& policy, const Capacity& capacity, SchedulerOptions options)
    : policy_(policy),
      capacity_(capacity),
      options_(options),
      pool_(policy, capacity),
      order_rule_(make_order_rule(policy)),
      admit_rules_(make_admit_rules(policy)),
      victim_rule_(make_victim_rule(policy)),
      program_(make_program(policy)),
      rows_(static_cast<std::size_t>(2 * policy.sequences_max + 2)),
      waiting_(policy.order != Order::fcfs),
      lock_step_(policy.block_tokens, 2 * policy.sequences_max + 2) {
  watermark_blocks_ =
      static_cast<std::int64_t>(std::ceil(policy.watermark * static_cast<double>(pool_.usable())));
  const std::int64_t usable = pool_.usable() - (policy.watermark_only_when_busy ? 0 : watermark_blocks_);
  const std::int64_t pool_tokens = usable * policy.block_tokens;
  tokens_max_ =
      static_cast<std::int32_t>(std::clamp<std::int64_t>(pool_tokens, 0, capacity.model_tokens_max));
  // A sequence that lost its blocks comes back whole, so that without chunks it must fit into one step.
  if (!policy.chunked && policy.batch_tokens_max > 0)
    tokens_max_ = std::min(tokens_max_, policy.batch_tokens_max);
  limits_.grow(rows_.size());
  for (std::size_t slot = rows_.size(); slot-- > 0;)
    free_slots_.push_back(Slot{static_cast<std::uint32_t>(slot)});
}

Acceptance Scheduler::submit(const Request& request) {
  FT_CHECK(request.prompt_tokens >= 1, request.prompt_tokens);
  const std::int64_t least = std::int64_t{request.prompt_tokens} + (request.max_new_tokens == 0 ? 0 : 1);
  const std::int64_t most =
      request.max_new_tokens < 0 ? least : std::int64_t{request.prompt_tokens} + request.max_new_tokens;
  if (most > capacity_.model_tokens_max) return {kNoHandle, Refusal::exceeds_context};
  // The same formula as at run time: whatever is admitted may grow to `most`, alone in the pool, under the
  // watermark where that binds a lone request.
  if (most > tokens_max_) return {kNoHandle, Refusal::never_fits};

  if (free_handles_.empty()) {
    free_handles_.push_back(Handle{static_cast<std::uint32_t>(sequences_.size())});
    sequences_.emplace_back();
    // Plans that are still to be carried out point at the facts, which may just have moved.
    for (Buffers& b : buffers_)
      for (Admission& a : b.admissions) a.facts = &sequences_[index(a.request)].facts;
  }
  const Handle handle = free_handles_.back();
  free_handles_.pop_back();
  Sequence& s = sequences_[index(handle)];
  s.facts = request;
  s.facts.prefix_hashes = {};
  if (policy_.prefix_cache) {
    s.hashes.assign(request.prefix_hashes.begin(), request.prefix_hashes.end());
    s.facts.prefix_hashes = s.hashes;
    s.chain.clear();
  }
  if (request.max_new_tokens < 0) s.facts.max_new_tokens = tokens_max_ - request.prompt_tokens;
  s.emitted = 0;
  s.overtaken = 0;
  s.evicted_in = kNoPlan;
  s.residence = Residence::waiting;
  enqueue(handle, false);
  ++alive_;
  return {handle, Refusal::none};
}

std::int64_t Scheduler::held_blocks(Slot slot) const {
  const Row& row = rows_[index(slot)];
  if (pool_.cache()) return static_cast<std::int64_t>(pool_.cache()->table(slot).size());
  if (policy_.take == Take::reserved || row.state != RowState::lock_step) return row.blocks;
  // While a plan is being made, a granted row holds the block of its new token before its context has grown.
  const bool granted = granting_ && (lock_step_granted_ || row.granted_in == now_planning_->plan.number);
  return blocks_for(lock_step_.context(slot) + (granted ? 1 : 0), policy_.block_tokens);
}

std::int32_t Scheduler::context_of(Slot slot) const {
  const Row& row = rows_[index(slot)];
  return row.state == RowState::lock_step ? lock_step_.context(slot) : row.computed;
}

void Scheduler::enter_lock_step(Slot slot) {
  Row& row = rows_[index(slot)];
  const Request& facts = sequences_[index(row.request)].facts;
  other_context_ -= row.computed;
  row.state = RowState::lock_step;
  row.entered_in = now_planning_->plan.number;
  lock_step_.enter(slot, row.computed);
  // The last token it may emit is the one that its context of prompt + max_new - 1 brings.
  limits_.insert(static_cast<std::uint32_t>(index(slot)),
                 lock_step_.tick() + facts.prompt_tokens + facts.max_new_tokens - 1 - row.computed);
}

void Scheduler::leave_lock_step(Slot slot) {
  Row& row = rows_[index(slot)];
  row.blocks = held_blocks(slot);
  row.computed = lock_step_.context(slot);
  row.known = row.computed + 1;
  sequences_[index(row.request)].emitted = row.known - sequences_[index(row.request)].facts.prompt_tokens;
  other_context_ += row.computed;
  lock_step_.leave(slot);
  if (limits_.contains(static_cast<std::uint32_t>(index(slot))))
    limits_.erase(static_cast<std::uint32_t>(index(slot)));
  row.state = RowState::catching_up;
}

void Scheduler::leave_out(Slot slot, LeftOut reason) {
  Row& row = rows_[index(slot)];
  if (row.state == RowState::lock_step) {
    leave_lock_step(slot);
    insert_catching(slot);
    now_planning_->changes.push_back({slot, row.request, row.computed, false});
  }
  row.left_out_in = attempt_;
  row.left_out = reason;
  count_left_out(reason, 1);
}

void Scheduler::drain(Slot slot) {
  // Its last token is on the way; it keeps its slot until the step that brings it has ended.
  Row& row = rows_[index(slot)];
  if (row.state == RowState::lock_step) {
    leave_lock_step(slot);
    row.drained_in = now_planning_->plan.number;
  }
  row.state = RowState::draining;
  ++draining_;
}

Slot Scheduler::choose_victim() const {
  Slot chosen = kNoSlot;
  VictimCandidate worst;
  for (auto entry = order_.rbegin(); entry != order_.rend(); ++entry) {
    const Row& row = rows_[index(entry->slot)];
    if (row.admitted != entry->admitted) continue;
    if (row.state != RowState::lock_step && row.state != RowState::catching_up) continue;
    const Request& facts = sequences_[index(row.request)].facts;
    const VictimCandidate candidate{entry->slot, facts.priority, facts.arrival, row.admitted};
    if (chosen == kNoSlot || victim_rule_->yields_before(candidate, worst)) {
      chosen = entry->slot;
      worst = candidate;
    }
    if (policy_.victim == Victim::last_admitted) break;
  }
  return chosen;
}

void Scheduler::refund(Slot slot) {
  // A victim may have been granted tokens earlier in this very plan.
  Row& row = rows_[index(slot)];
  const StepPlan& plan = now_planning_->plan;
  const bool granted = row.granted_in == plan.number;
  if (row.state == RowState::lock_step) {
    if (lock_step_granted_ || granted) ++budget_;
    if (granted) unseal_full_blocks(slot, lock_step_.context(slot), lock_step_.context(slot) + 1);
    return;
  }
  if (!granted) return;
  std::vector<Chunk>& chunks = now_planning_->chunks;
  const auto chunk =
      std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& c) { return c.slot == slot; });
  FT_CHECK(chunk != chunks.end());
  unseal_full_blocks(slot, chunk->context, row.computed);
  budget_ += chunk->tokens;
  untouched_blocks_ +=
      blocks_for(row.computed, policy_.block_tokens) - blocks_for(chunk->context, policy_.block_tokens);
  row.computed -= chunk->tokens;
  other_context_ -= chunk->tokens;
  chunks.erase(chunk);
}

void Scheduler::evict(Slot slot) {
  Row& row = rows_[index(slot)];
  Sequence& s = sequences_[index(row.request)];
  refund(slot);
  // As somebody who waits, it has another reason.
  if (row.left_out_in == attempt_) count_left_out(row.left_out, -1);
  if (row.state == RowState::lock_step) {
    leave_lock_step(slot);
    now_planning_->changes.push_back({slot, row.request, row.computed, false});
  } else {
    forget_catching(slot);
  }
  const std::int64_t blocks = held_blocks(slot);
  const bool swap = policy_.preempt == PreemptMode::swap && row.computed > 0 && pool_.host_free() >= blocks;
  now_planning_->evictions.push_back({slot, row.request, row.computed, swap});
  s.evicted_in = attempt_;
  s.slot = kNoSlot;
  if (swap) {
    s.residence = Residence::swapped;
    s.context = row.computed;
    s.blocks = static_cast<std::int32_t>(blocks);
    pool_.host_take(blocks);
    swapped_.push_back(row.request);
    now_planning_->copies.push_back({slot, row.request, Tier::device, Tier::host, s.blocks});
  } else {
    s.residence = Residence::waiting;
    enqueue(row.request, true);
    if (waiting_told_) count_left_out(LeftOut::evicted_this_step, 1);
  }
  release_row(slot, swap && capacity_.transfers_overlap, kNoHandle);
}

void Scheduler::enqueue(Handle handle, bool front) {
  Sequence& s = sequences_[index(handle)];
  // With keys, equals go by arrival, also when they come back; without, a preempted request goes before all
  // others.
  const std::int64_t key = order_rule_ ? order_rule_->key(s.facts) : 0;
  if (order_rule_)
    s.ticket = static_cast<std::int64_t>(s.facts.id);
  else
    s.ticket = front ? --first_ticket_ : ++last_ticket_;
  waiting_.push({key, s.ticket, handle}, front);
}

void Scheduler::insert_catching(Slot slot) {
  const auto place =
      std::lower_bound(catching_up_.begin(), catching_up_.end(), rows_[index(slot)].admitted,
                       [&](Slot s, std::uint64_t admitted) { return rows_[index(s)].admitted < admitted; });
  catching_up_.insert(place, slot);
}

void Scheduler::forget_catching(Slot slot) {
  const auto place = std::find(catching_up_.begin(), catching_up_.end(), slot);
  if (place != catching_up_.end()) catching_up_.erase(place);
}

void Scheduler::release_row(Slot slot, bool blocks_move, Handle freed) {
  Row& row = rows_[index(slot)];
  const std::int64_t blocks = held_blocks(slot);
  untouched_blocks_ -= blocks - std::min(blocks, blocks_for(row.computed, policy_.block_tokens));
  other_context_ -= row.computed;
  --resident_;
  row.state = RowState::free;
  row.admitted = 0;
  // A plan that has not been committed may still touch the row: at depth 1 there nearly always is one.
  const bool flying = committed_ < next_plan_;
  Deferred deferred{next_plan_ - 1, slot, blocks, freed};
  if (blocks_move) {
    // The blocks stay with the transfer until it ends.
    moving_blocks_ += blocks;
    deferred.blocks = 0;
  }
  if (!flying) return settle(deferred);
  if (!policy_.deferred_frees && !pool_.cache()) {
    pool_.give(slot, deferred.blocks);
    deferred.blocks = 0;
  }
  deferred_blocks_ += deferred.blocks;
  deferred_.push_back(deferred);
}

void Scheduler::settle(const Deferred& deferred) {
  if (deferred.slot != kNoSlot) {
    if (deferred.blocks > 0) pool_.give(deferred.slot, deferred.blocks);
    free_slots_.push_back(deferred.slot);
  }
  if (deferred.handle != kNoHandle) {
    free_handles_.push_back(deferred.handle);
    released_.push_back(deferred.handle);
  }
}

void Scheduler::extend(std::int64_t repeats) {
  StepPlan& plan = now_planning_->plan;
  FT_CHECK(repeats >= 1 && repeats <= plan.repeats_max, repeats, plan.repeats_max);
  if (repeats == 1) return;
  if (pool_.cache()) {
    // Numbered blocks are handed out tick by tick, in the order in which single steps would.
    for (std::int64_t tick = 1; tick < repeats; ++tick) {
      for (const ListEntry& entry : order_) {
        const Row& row = rows_[index(entry.slot)];
        if (row.admitted != entry.admitted || row.state != RowState::lock_step) continue;
        const std::int32_t context = lock_step_.context(entry.slot);
        pool_.take(entry.slot, blocks_for(context + 1, policy_.block_tokens) - held_blocks(entry.slot));
        seal_full_blocks(entry.slot, context, context + 1);
      }
      lock_step_.advance(1);
    }
  } else {
    const std::int64_t growth = lock_step_.growth_over(repeats - 1);
    if (policy_.take == Take::reserved)
      untouched_blocks_ -= growth;
    else
      pool_.take_many(growth);
    lock_step_.advance(repeats - 1);
  }
  plan.tick = lock_step_.tick();
  limits_.pop(lock_step_.tick(), [&](std::uint32_t slot) { drain(Slot{slot}); });
}

void Scheduler::commit(bool step_done, std::span<const Handle> ended) {
  if (step_done) {
    ++committed_;
    while (!deferred_.empty() && deferred_.front().until < committed_) {
      deferred_blocks_ -= deferred_.front().blocks;
      settle(deferred_.front());
      deferred_.erase(deferred_.begin());
    }
  }
  for (const Handle handle : ended) end(handle);
}

void Scheduler::cancel(Handle handle) { end(handle); }

void Scheduler::end(Handle handle) {
  Sequence& s = sequences_[index(handle)];
  FT_CHECK(s.residence != Residence::gone, index(handle));
  --alive_;
  const Residence was = std::exchange(s.residence, Residence::gone);
  if (was == Residence::resident) return bury(s.slot);
  if (was == Residence::waiting) waiting_.forget();
  if (was == Residence::swapped) {
    pool_.host_give(s.blocks);
    swapped_.erase(std::find(swapped_.begin(), swapped_.end(), handle));
  }
  // Its slot may still be in flight; the handle may not be reused before.
  const Deferred deferred{next_plan_ - 1, kNoSlot, 0, handle};
  if (committed_ < next_plan_)
    deferred_.push_back(deferred);
  else
    settle(deferred);
}

void Scheduler::bury(Slot slot) {
  Row& row = rows_[index(slot)];
  const Handle handle = row.request;
  // A plan made before this end was known has counted the row already, unless the row entered lock-step with
  // that very plan.
  const std::uint64_t flying = next_plan_ - 1;
  const bool decodes =
      row.state == RowState::lock_step && lock_step_granted_in_ == flying && row.entered_in < flying;
  const bool decodes_last = row.state == RowState::draining && row.drained_in == flying;
  if (committed_ < next_plan_ && (decodes || decodes_last)) ++now_planning_->plan.wasted_rows;
  if (row.state == RowState::lock_step) leave_lock_step(slot);
  if (row.state == RowState::draining) --draining_;
  if (row.state == RowState::loading) --loading_;
  forget_catching(slot);
  if (!policy_.release_at_batch_end) return release_row(slot, false, handle);
  row.state = RowState::dead;
  dead_.push_back(slot);
  dead_context_ += row.computed;
  if (static_cast<std::size_t>(resident_) > dead_.size()) return;
  for (const Slot dead : dead_) release_row(dead, false, rows_[index(dead)].request);
  dead_.clear();
  dead_context_ = 0;
  batch_ended_ = true;
}

void Scheduler::transfer_done(const Copy& copy) {
  if (copy.to == Tier::host) {
    pool_.give_many(copy.blocks);
    moving_blocks_ -= copy.blocks;
    return;
  }
  pool_.host_give(copy.blocks);
  loading_blocks_ -= copy.blocks;
  Row& row = rows_[index(copy.slot)];
  if (row.request != copy.request || row.state != RowState::loading) return;
  row.state = RowState::catching_up;
  --loading_;
  insert_catching(copy.slot);
}

KvUse Scheduler::kv_use() const {
  KvUse use;
  pool_.measure(use);
  use.blocks_touched = use.blocks_held - untouched_blocks_;
  use.context_tokens = lock_step_.context_sum() + other_context_;
  return use;
}

}  // namespace foretoken

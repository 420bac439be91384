// The phases of a step: which tokens of which residents are computed, and what the finished plan says.
#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"
#include "sim/core/scheduler.hpp"

namespace foretoken {
namespace {

/// Longer windows save little, since a window costs as much as a step, and looking further ahead costs more.
constexpr std::int64_t kWindowRepeatsMax = 64;

}  // namespace

Decision Scheduler::plan(Time now) {
  begin_plan(now);
  const std::int64_t budget = budget_;
  for (const PhaseRule& rule : program_) {
    run_phase(rule.phase);
    if (rule.exclusive && budget_ != budget) break;
  }
  finish_plan();
  return decide();
}

void Scheduler::begin_plan(Time now) {
  FT_CHECK(next_plan_ - committed_ <= 1, next_plan_, committed_);
  now_planning_ = &buffers_[next_plan_ & 1];
  Buffers& b = *now_planning_;
  b.chunks.clear();
  b.decodes.clear();
  b.admissions.clear();
  b.evictions.clear();
  b.copies.clear();
  b.changes.clear();
  b.plan = StepPlan{};
  b.plan.number = next_plan_;
  ++attempt_;
  now_ = now;
  budget_ =
      policy_.batch_tokens_max > 0 ? policy_.batch_tokens_max : std::numeric_limits<std::int64_t>::max() / 2;
  lock_step_granted_ = false;
  granting_ = true;
  resident_at_start_ = resident_;
  wake_ = kNever;
  join_refused_ = false;
  waiting_told_ = false;
  left_swapped_ = LeftOut::prefill_exclusive;
  owed_blocks_ = std::exchange(owes_blocks_, false);
  // Entries of rows that have left are skipped; they are swept out before they outnumber the living.
  if (order_.size() > 64 + 2 * static_cast<std::size_t>(resident_))
    std::erase_if(order_, [&](const ListEntry& e) { return rows_[index(e.slot)].admitted != e.admitted; });
}

void Scheduler::run_phase(Phase phase) {
  switch (phase) {
    case Phase::admit: admit_waiting(); break;
    case Phase::swap_in: swap_in(); break;
    case Phase::residents:
    case Phase::decodes:
    case Phase::prompts: grant_residents(phase); break;
  }
}

std::int32_t Scheduler::capped(std::int32_t debt) const {
  std::int64_t tokens = debt;
  if (policy_.chunk_tokens_max > 0) tokens = std::min<std::int64_t>(tokens, policy_.chunk_tokens_max);
  return static_cast<std::int32_t>(std::min(tokens, budget_));
}

void Scheduler::grant_residents(Phase phase) {
  if (lock_step_.count() == 0 && catching_up_.empty()) {
    lock_step_granted_ = lock_step_granted_ || phase != Phase::prompts;
    return;
  }
  if (!options_.fast_paths || !grant_fast(phase)) walk_residents(phase);
}

bool Scheduler::grant_fast(Phase phase) {
  if (pool_.cache() || !policy_.chunked) return false;
  const std::int32_t decodes = phase == Phase::prompts ? 0 : lock_step_.count();
  if (budget_ < decodes) return false;
  const bool grows = decodes > 0 && policy_.take != Take::reserved;
  std::int64_t needed = grows ? lock_step_.growth() : 0;
  std::int64_t left = budget_ - decodes;
  for (const Slot slot : catching_up_) {
    const Row& row = rows_[index(slot)];
    // An earlier phase of this plan has served it.
    if (row.granted_in == now_planning_->plan.number) continue;
    const std::int32_t debt = row.known - row.computed;
    if (phase != Phase::residents && debt == 1) return false;
    if (phase == Phase::decodes) continue;
    std::int64_t tokens = debt;
    if (policy_.chunk_tokens_max > 0) tokens = std::min<std::int64_t>(tokens, policy_.chunk_tokens_max);
    // A row that is cut short is exact here only if nobody stands behind it in the list.
    const bool last = slot == order_.back().slot && row.admitted == order_.back().admitted;
    if (tokens > left && (!last || left == 0)) return false;
    tokens = std::min(tokens, left);
    left -= tokens;
    needed += std::max<std::int64_t>(0, blocks_for(row.computed + tokens, policy_.block_tokens) - row.blocks);
  }
  if (!pool_.fits(needed)) return false;
  if (grows) {
    pool_.take_many(lock_step_.growth());
    untouched_blocks_ += lock_step_.growth();
  }
  budget_ -= decodes;
  if (phase != Phase::prompts) lock_step_granted_ = true;
  if (phase == Phase::decodes) return true;
  for (const Slot slot : catching_up_) {
    const Row& row = rows_[index(slot)];
    if (row.granted_in != now_planning_->plan.number)
      FT_CHECK(grant_walked(slot, capped(row.known - row.computed)));
  }
  return true;
}

void Scheduler::walk_residents(Phase phase) {
  bool is_stopped = false;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Slot slot = order_[i].slot;
    Row& row = rows_[index(slot)];
    if (row.admitted != order_[i].admitted) continue;
    const bool decode = row.state == RowState::lock_step;
    if (!decode && row.state != RowState::catching_up) continue;
    const std::int32_t debt = decode ? 1 : row.known - row.computed;
    if (phase == Phase::decodes && debt != 1) continue;
    if (phase == Phase::prompts && (debt == 1 || decode)) continue;
    if (row.granted_in == now_planning_->plan.number) continue;
    if (is_stopped) {
      leave_out(slot, LeftOut::kv_blocks);
      continue;
    }
    if (decode && budget_ > 0 && options_.fast_paths && is_inside_block(slot)) {
      row.granted_in = now_planning_->plan.number;
      --budget_;
      continue;
    }
    const std::int32_t tokens = capped(debt);
    if (tokens == 0 || (!policy_.chunked && tokens < debt)) {
      leave_out(slot, LeftOut::token_budget);
      continue;
    }
    const bool evicted_itself = !grant_walked(slot, tokens) && row.admitted != order_[i].admitted;
    // vLLM V1 ends its walk over the residents when the one at hand has to yield, whoever stands behind it.
    is_stopped = evicted_itself && policy_.form == Form::list_order;
  }
  // Every lock-step row that is still there has its token now.
  if (phase != Phase::prompts) lock_step_granted_ = true;
}

bool Scheduler::is_inside_block(Slot slot) const {
  const std::int32_t held = lock_step_.context(slot) % policy_.block_tokens;
  return held != 0 && held != policy_.block_tokens - 1;
}

bool Scheduler::grant_walked(Slot slot, std::int32_t tokens) {
  Row& row = rows_[index(slot)];
  const std::int32_t context = context_of(slot);
  const std::int64_t blocks =
      std::max<std::int64_t>(0, blocks_for(context + tokens, policy_.block_tokens) - held_blocks(slot));
  if (!pool_.fits(blocks) && !make_room(slot, blocks)) return false;
  pool_.take(slot, blocks);
  untouched_blocks_ += blocks;
  if (row.state == RowState::lock_step) {
    row.granted_in = now_planning_->plan.number;
    --budget_;
    seal_full_blocks(slot, context, context + 1);
    return true;
  }
  row.blocks += blocks;
  grant(slot, tokens);
  return true;
}

bool Scheduler::make_room(Slot beneficiary, std::int64_t blocks) {
  const std::uint64_t admitted = rows_[index(beneficiary)].admitted;
  while (!pool_.fits(blocks)) {
    // Blocks that are on their way back make further evictions pointless; waiting for them is what stops a
    // cascade that evicts everybody.
    const bool coming =
        deferred_blocks_ + moving_blocks_ + pool_.free() >= blocks && deferred_blocks_ + moving_blocks_ > 0;
    const Slot victim = coming || policy_.preempt == PreemptMode::none ? kNoSlot : choose_victim();
    // Alone among those that could yield, it gains nothing by yielding: what holds the rest of the pool is
    // about to end.
    const bool alone = victim == beneficiary && resident_ == draining_ + loading_ + 1;
    if (victim == kNoSlot || alone) {
      owes_blocks_ = owes_blocks_ || coming;
      leave_out(beneficiary, LeftOut::kv_blocks);
      return false;
    }
    evict(victim);
    if (rows_[index(beneficiary)].admitted != admitted) return false;
  }
  return true;
}

void Scheduler::grant(Slot slot, std::int32_t tokens) {
  Row& row = rows_[index(slot)];
  const Request& facts = sequences_[index(row.request)].facts;
  FT_CHECK(tokens >= 1 && tokens <= row.known - row.computed && tokens <= budget_, tokens, row.known,
           row.computed, budget_);
  const bool sampled = row.computed + tokens == row.known && facts.max_new_tokens > 0;
  now_planning_->chunks.push_back({slot, row.request, tokens, row.computed, sampled});
  seal_full_blocks(slot, row.computed, row.computed + tokens);
  untouched_blocks_ -= blocks_for(row.computed + tokens, policy_.block_tokens) -
                       blocks_for(row.computed, policy_.block_tokens);
  row.computed += tokens;
  row.granted_in = now_planning_->plan.number;
  other_context_ += tokens;
  budget_ -= tokens;
}

void Scheduler::complete_rows() {
  for (const Chunk& chunk : now_planning_->chunks) {
    Row& row = rows_[index(chunk.slot)];
    if (row.computed < row.known) continue;
    forget_catching(chunk.slot);
    Sequence& s = sequences_[index(row.request)];
    s.emitted = row.known - s.facts.prompt_tokens + (chunk.sampled ? 1 : 0);
    now_planning_->changes.push_back({chunk.slot, row.request, row.computed, true});
    if (s.emitted >= s.facts.max_new_tokens)
      drain(chunk.slot);
    else
      enter_lock_step(chunk.slot);
  }
}

void Scheduler::finish_plan() {
  Buffers& b = *now_planning_;
  StepPlan& p = b.plan;
  granting_ = false;
  if (lock_step_granted_) {
    p.decode_count = lock_step_.count();
    p.decode_context_sum = lock_step_.context_sum();
    p.decode_context_min = lock_step_.context_min();
    p.decode_context_max = lock_step_.context_max();
    if (options_.columns)
      for (const ListEntry& e : order_)
        if (rows_[index(e.slot)].admitted == e.admitted && rows_[index(e.slot)].state == RowState::lock_step)
          b.decodes.push_back({e.slot, lock_step_.context(e.slot)});
    untouched_blocks_ -= lock_step_.growth();
    lock_step_.advance(1);
  } else {
    const auto waits = [&](Slot slot) {
      const Row& row = rows_[index(slot)];
      return row.granted_in != p.number && row.known - row.computed == 1;
    };
    count_left_out(LeftOut::prefill_exclusive,
                   lock_step_.count() + std::count_if(catching_up_.begin(), catching_up_.end(), waits));
  }
  count_left_out(left_swapped_, swapped());
  count_left_out(LeftOut::transfer, loading_);
  p.tick = lock_step_.tick();
  p.new_tokens = p.decode_count;
  p.sampled_rows = p.decode_count;
  std::int32_t longest = 0;
  for (const Chunk& chunk : b.chunks) {
    p.new_tokens += chunk.tokens;
    p.sampled_rows += chunk.sampled ? 1 : 0;
    longest = std::max(longest, chunk.tokens);
  }
  if (policy_.padded)
    for (const Chunk& chunk : b.chunks) p.padding_tokens += longest - chunk.tokens;
  if (policy_.padded && lock_step_granted_) {
    p.dead_rows = static_cast<std::int32_t>(dead_.size());
    p.dead_context_sum = dead_context_;
  }
  complete_rows();
  if (lock_step_granted_) limits_.pop(lock_step_.tick(), [&](std::uint32_t slot) { drain(Slot{slot}); });
  p.chunks = b.chunks;
  p.decodes = b.decodes;
  p.admissions = b.admissions;
  p.evictions = b.evictions;
  p.copies = b.copies;
  p.lock_step_changes = b.changes;
  p.repeats_max = repeats_allowed();
  if (p.new_tokens == 0) return;
  ++next_plan_;
  if (lock_step_granted_) lock_step_granted_in_ = p.number;
}

std::int64_t Scheduler::repeats_allowed() const {
  const Buffers& b = *now_planning_;
  const bool pure = lock_step_granted_ && b.chunks.empty() && b.admissions.empty() && b.evictions.empty() &&
                    b.copies.empty() && b.changes.empty();
  // Whatever will change by itself while the step runs needs a decision of its own.
  if (!pure || lock_step_.count() == 0 || lock_step_.count() != b.plan.decode_count) return 1;
  if (!catching_up_.empty() || draining_ + loading_ > 0 || !deferred_.empty() || moving_blocks_ > 0) return 1;
  if (wake_ != kNever || (policy_.head_of_line == HeadOfLine::bounded_skip && !waiting_.empty())) return 1;
  std::int64_t repeats =
      limits_.next(lock_step_.tick(), lock_step_.tick() + kWindowRepeatsMax) - lock_step_.tick() + 1;
  if (policy_.take != Take::reserved) repeats = 1 + lock_step_.ticks_within(pool_.free(), repeats - 1);
  return repeats;
}

Decision Scheduler::decide() {
  Buffers& b = *now_planning_;
  Decision decision;
  const bool decided = !b.evictions.empty() || !b.copies.empty() || !b.changes.empty();
  if (b.plan.new_tokens > 0 || decided) decision.plan = &b.plan;
  if (b.plan.new_tokens > 0) return decision;
  if (alive_ == 0) {
    decision.idle_reason = IdleReason::no_work;
  } else if (join_refused_) {
    decision.idle_reason = IdleReason::join_rule;
    decision.idle_until = wake_;
  } else if (loading_ > 0 || moving_blocks_ > 0) {
    decision.idle_reason = IdleReason::transfer;
  } else {
    decision.idle_reason = IdleReason::in_flight;
  }
  return decision;
}

}  // namespace foretoken

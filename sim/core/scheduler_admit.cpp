// Who becomes resident: the waiting, and the swapped.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/core/random.hpp"
#include "sim/core/scheduler.hpp"

namespace foretoken {

void Scheduler::count_left_out(LeftOut reason, std::int64_t requests) {
  now_planning_->plan.left_out[static_cast<std::size_t>(reason)] += static_cast<std::int32_t>(requests);
}

bool Scheduler::may_join() {
  // Newcomers would take the blocks that somebody gave up for a resident and that are still on their way;
  // where admissions come before decodes, also those that have just come.
  const bool owed = owes_blocks_ || (owed_blocks_ && policy_.form == Form::prefill_exclusive);
  if (owed && resident_ > 0) {
    count_left_out(LeftOut::preemption_freeze, waiting());
    return false;
  }
  AdmitState state;
  state.now = now_;
  state.resident = resident_;
  state.resident_at_start = resident_at_start_;
  state.waiting = waiting();
  state.swapped = swapped();
  state.preempted = !now_planning_->evictions.empty();
  state.oldest_arrival = kNever;
  state.watermark_blocks = watermark_blocks_;
  if (policy_.join == Join::count_or_timeout && resident_ == 0) {
    waiting_.for_each([&](const WaitingQueue::Entry& e) {
      const Sequence& s = sequences_[index(e.request)];
      if (s.ticket == e.ticket && s.residence == Residence::waiting)
        state.oldest_arrival = std::min(state.oldest_arrival, s.facts.arrival);
    });
  }
  for (const auto& rule : admit_rules_) {
    const Verdict verdict = rule->ask(state);
    if (verdict.yes) continue;
    wake_ = std::min(wake_, verdict.ask_again);
    join_refused_ = verdict.reason == LeftOut::join_rule;
    count_left_out(verdict.reason, waiting());
    return false;
  }
  return true;
}

Scheduler::Fit Scheduler::fit(const Sequence& s) const {
  Fit fit;
  const Request& facts = s.facts;
  fit.known = facts.prompt_tokens + s.emitted;
  std::int64_t cached_free = 0;
  if (const PrefixCache* cache = pool_.cache()) {
    // The last known token is always computed, since its logits are wanted.
    const std::span<const std::uint64_t> chain(s.chain);
    const auto full = static_cast<std::size_t>((fit.known - 1) / policy_.block_tokens);
    const std::int32_t blocks = cache->match(chain.first(full));
    cached_free = cache->match_free(chain, blocks);
    fit.hit = blocks * policy_.block_tokens;
  }
  const std::int32_t debt = fit.known - fit.hit;
  fit.tokens = capped(debt);
  if (fit.tokens == 0 || (!policy_.chunked && fit.tokens < debt)) {
    fit.reason = LeftOut::token_budget;
    return fit;
  }
  const std::int32_t after_step = fit.hit + fit.tokens;
  const std::int32_t limit = facts.prompt_tokens + facts.max_new_tokens;
  const std::int64_t reserved = std::max<std::int64_t>(
      after_step, reserved_tokens(policy_.reserve, fit.known, after_step, limit, tokens_max_));
  const std::int64_t hit_blocks = fit.hit / policy_.block_tokens;
  const std::int64_t reserved_blocks = blocks_for(reserved, policy_.block_tokens) - hit_blocks;
  const std::int64_t taken = policy_.take == Take::reserved ? reserved
                             : policy_.take == Take::known  ? std::int64_t{fit.known}
                                                            : std::int64_t{after_step};
  fit.blocks = blocks_for(taken, policy_.block_tokens) - hit_blocks;
  const bool watermark = !policy_.watermark_only_when_busy || resident_ > 0;
  fit.reason = LeftOut::kv_blocks;
  fit.fits =
      pool_.fits(std::max(reserved_blocks, fit.blocks), cached_free + (watermark ? watermark_blocks_ : 0));
  return fit;
}

void Scheduler::admit_waiting() {
  const auto living = [&](const WaitingQueue::Entry& e) {
    const Sequence& s = sequences_[index(e.request)];
    return s.ticket == e.ticket && s.residence == Residence::waiting;
  };
  set_aside_.clear();
  while (!waiting_.empty() && may_join()) {
    const WaitingQueue::Entry entry = waiting_.front(living);
    Sequence& s = sequences_[index(entry.request)];
    if (pool_.cache()) prepare_chain(s, (s.facts.prompt_tokens + s.emitted - 1) / policy_.block_tokens);
    Fit f = fit(s);
    // No sooner than in the next step, or two requests could evict each other for ever.
    const bool just_evicted = s.evicted_in == attempt_;
    if (just_evicted) f = {f.known, f.hit, f.tokens, f.blocks, false, LeftOut::evicted_this_step};
    if (f.fits) {
      bool is_last = false;
      for (const WaitingQueue::Entry& passed : set_aside_)
        is_last |= ++sequences_[index(passed.request)].overtaken >= policy_.overtakes_max;
      waiting_.pop();
      admit(entry, f);
      if (!is_last) continue;
      count_left_out(LeftOut::head_of_line, waiting());
      break;
    }
    const bool skippable = policy_.head_of_line == HeadOfLine::bounded_skip &&
                           f.reason != LeftOut::token_budget && s.overtaken < policy_.overtakes_max &&
                           now_ - s.facts.arrival < policy_.overtake_age_max;
    count_left_out(f.reason, 1);
    if (!skippable) {
      count_left_out(f.reason == LeftOut::token_budget ? f.reason : LeftOut::head_of_line, waiting() - 1);
      break;
    }
    waiting_.pop();
    set_aside_.push_back(entry);
  }
  for (auto passed = set_aside_.rbegin(); passed != set_aside_.rend(); ++passed) waiting_.push(*passed, true);
  waiting_told_ = true;
}

Slot Scheduler::open_slot(Handle handle) {
  FT_CHECK(!free_slots_.empty());
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  Row& row = rows_[index(slot)];
  row = Row{};
  row.request = handle;
  row.state = RowState::catching_up;
  row.admitted = ++admitted_;
  order_.push_back({slot, row.admitted});
  ++resident_;
  Sequence& s = sequences_[index(handle)];
  s.residence = Residence::resident;
  s.slot = slot;
  return slot;
}

void Scheduler::admit(const WaitingQueue::Entry& entry, const Fit& f) {
  Sequence& s = sequences_[index(entry.request)];
  const Slot slot = open_slot(entry.request);
  Row& row = rows_[index(slot)];
  row.known = f.known;
  row.computed = f.hit;
  other_context_ += f.hit;
  s.overtaken = 0;
  const std::int32_t hit_blocks = f.hit / policy_.block_tokens;
  if (hit_blocks > 0) pool_.cache()->adopt(slot, s.chain, hit_blocks);
  pool_.take(slot, f.blocks);
  untouched_blocks_ += f.blocks;
  row.blocks = hit_blocks + f.blocks;
  now_planning_->admissions.push_back({slot, entry.request, &s.facts, f.known, f.hit, false, s.facts.id});
  catching_up_.push_back(slot);
  grant(slot, f.tokens);
}

void Scheduler::swap_in() {
  while (!swapped_.empty()) {
    const bool is_frozen = !now_planning_->evictions.empty() || owes_blocks_;
    left_swapped_ = is_frozen                            ? LeftOut::preemption_freeze
                    : resident_ >= policy_.sequences_max ? LeftOut::sequence_cap
                                                         : LeftOut::token_budget;
    if (is_frozen || resident_ >= policy_.sequences_max || budget_ == 0) return;
    const Handle handle = swapped_.front();
    Sequence& s = sequences_[index(handle)];
    const std::int32_t known = s.facts.prompt_tokens + s.emitted;
    const std::int32_t tokens = capped(known - s.context);
    const std::int64_t blocks =
        std::max<std::int64_t>(s.blocks, blocks_for(s.context + tokens, policy_.block_tokens));
    left_swapped_ = LeftOut::kv_blocks;
    if (tokens == 0 || !pool_.fits(blocks, resident_ > 0 ? watermark_blocks_ : 0)) return;
    swapped_.pop_front();
    const Slot slot = open_slot(handle);
    Row& row = rows_[index(slot)];
    row.known = known;
    row.computed = s.context;
    row.blocks = blocks;
    other_context_ += s.context;
    pool_.take(slot, blocks);
    untouched_blocks_ += blocks - blocks_for(s.context, policy_.block_tokens);
    now_planning_->admissions.push_back({slot, handle, &s.facts, known, s.context, true, s.facts.id});
    now_planning_->copies.push_back({slot, handle, Tier::host, Tier::device, s.blocks});
    if (capacity_.transfers_overlap) {
      row.state = RowState::loading;
      ++loading_;
      loading_blocks_ += s.blocks;
      continue;
    }
    pool_.host_give(s.blocks);
    catching_up_.push_back(slot);
    grant(slot, tokens);
  }
}

std::uint64_t Scheduler::content_hash(const Sequence& s, std::int32_t position) const {
  const std::int32_t block = policy_.block_tokens;
  const std::int32_t unit = s.facts.hash_block_tokens;
  const std::int64_t begin = std::int64_t{position} * block;
  const bool in_prompt = begin + block <= s.facts.prompt_tokens;
  // What the prompt's hashes do not cover is the request's own: its answer, or a prompt that shares with
  // nobody.
  const auto own =
      mix(mix(static_cast<std::uint64_t>(s.facts.id) + 1) ^ static_cast<std::uint64_t>(position));
  if (!in_prompt || unit <= 0) return own;
  std::uint64_t hash = 0;
  for (std::int64_t token = begin; token < begin + block; token += std::min(block, unit)) {
    const auto piece = static_cast<std::size_t>(token / unit);
    if (piece >= s.hashes.size()) return own;
    hash = mix(hash ^ s.hashes[piece] ^ mix(static_cast<std::uint64_t>(token % unit)));
  }
  return hash;
}

void Scheduler::prepare_chain(Sequence& s, std::int32_t blocks) const {
  while (static_cast<std::int32_t>(s.chain.size()) < blocks) {
    const auto position = static_cast<std::int32_t>(s.chain.size());
    const std::uint64_t parent = s.chain.empty() ? 0 : s.chain.back();
    s.chain.push_back(mix(mix(parent) ^ content_hash(s, position)));
  }
}

void Scheduler::seal_full_blocks(Slot slot, std::int32_t before, std::int32_t after) {
  if (!pool_.cache()) return;
  Sequence& s = sequences_[index(rows_[index(slot)].request)];
  const std::int32_t first = before / policy_.block_tokens;
  const std::int32_t last = after / policy_.block_tokens;
  if (first == last) return;
  prepare_chain(s, last);
  for (std::int32_t p = first; p < last; ++p)
    pool_.cache()->seal(slot, p, s.chain[static_cast<std::size_t>(p)]);
}

void Scheduler::unseal_full_blocks(Slot slot, std::int32_t before, std::int32_t after) {
  if (!pool_.cache()) return;
  const std::int32_t block = policy_.block_tokens;
  for (std::int32_t p = before / block; p < after / block; ++p) pool_.cache()->unseal(slot, p);
}

}  // namespace foretoken

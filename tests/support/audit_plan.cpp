// What every plan must keep, recomputed from the plan alone.
#include <algorithm>

#include "tests/support/audit.hpp"

namespace foretoken::laws {

Window Audit::launch(const StepPlan& plan, Time begin) {
  clock(begin);
  LAW(plan.number == next_number_++, plan.number);
  // Only a rule that waits for company, or for blocks on their way, leaves a device without work.
  const bool may_idle = policy_.join == Join::count_or_timeout ||
                        (policy_.preempt == PreemptMode::swap && setup_.capacity.transfers_overlap);
  LAW(begin >= end_of_last_);
  LAW(may_idle || begin == std::max(end_of_last_, busy_from_), "idle while somebody waits",
      picoseconds(begin));
  // An arrival cuts a window at the first boundary that is not before it; at depth 1 the next step is decided
  // already.
  if (flight_.plan != nullptr && flight_.window.end_known && flight_.reported > 1 + policy_.depth)
    LAW(flight_.first_arrival_within > flight_.window.end_after(flight_.reported - 1 - policy_.depth),
        picoseconds(flight_.first_arrival_within));
  if (flight_.plan != nullptr) last_decision_ = flight_.window.end_after(flight_.reported - 1);
  check_arrivals(begin);
  for (const Eviction& e : plan.evictions) {
    for (const Admission& a : plan.admissions)
      LAW(a.request != e.request, "admitted in the step that evicted it");
    LAW(life(e.request).place != Where::resident, "the victim is still there");
  }
  for (const Admission& a : plan.admissions) {
    const Life& l = life(a.request);
    LAW(l.place == Where::gone || (l.place == Where::resident && l.slot == a.slot));
    LAW(a.swapped_in || !policy_.freeze_after_preemption || plan.evictions.empty(),
        "admitted in a step that preempted", static_cast<unsigned>(l.id));
  }
  Flight flight;
  flight.plan = &plan;
  std::set<Slot> slots;
  for (const Chunk& chunk : plan.chunks) check_chunk(plan, chunk, slots);
  std::swap(flight_, flight);
  check_decodes(plan, slots);
  check_totals(plan);
  check_evictions(plan);
  check_memory(plan);
  if (is_exact()) {
    check_forms(plan);
    check_work_conserved(plan);
    check_reasons(plan);
  }
  for (Life& l : lives_) l.evicted_since_launch = false;
  LAW(scheduler_.audit());
  flight_.window = priced_.launch(plan, begin);
  return flight_.window;
}

Time Audit::complete(const StepPlan& plan, const Window& window) {
  const Time end = priced_.complete(plan, window);
  flight_.window.first = end - window.begin;
  return end;
}

Time Audit::transfer_end(const Copy& copy, Time begin) {
  const Time end = priced_.transfer_end(copy, begin);
  LAW(end >= begin && copy.from != copy.to && copy.blocks > 0);
  const bool out = copy.to == Tier::host;
  LAW(life(copy.request).place != (out ? Where::resident : Where::waiting));
  moving_.push_back({end, out ? copy.blocks : 0, out ? 0 : copy.blocks});
  if (!out) life(copy.request).loading_until = end;
  return end;
}

void Audit::check_arrivals(Time begin) const {
  if (!is_exact()) return;
  if (source_ != nullptr)
    LAW(source_->next_time() > begin, "an arrival that ties with the boundary is not seen");
  for (const Life& l : lives_) {
    if (l.place == Where::gone) continue;
    const bool delivered = l.emitted > 0 && policy_.delivery == Delivery::streamed;
    LAW(delivered || after(l.offer.request.arrival, l.offer.patience) > begin, "still here without patience");
    LAW(after(l.offer.request.arrival, l.offer.cancel_after) > begin, "still here, though cancelled");
  }
}

void Audit::check_chunk(const StepPlan& plan, const Chunk& chunk, std::set<Slot>& slots) {
  LAW(slots.insert(chunk.slot).second, "two grants for one slot", index(chunk.slot));
  Life& l = life(chunk.request);
  LAW(chunk.tokens >= 1 && (policy_.chunk_tokens_max == 0 || chunk.tokens <= policy_.chunk_tokens_max),
      chunk.tokens);
  if (l.place == Where::gone) {
    LAW(policy_.depth == 1, "a row of somebody who has left");
    return;
  }
  const auto owner = owners_.find(chunk.slot);
  LAW(l.place == Where::resident && owner != owners_.end() && owner->second == l.id,
      "granted without being resident", static_cast<unsigned>(l.id));
  const std::int32_t debt = known(l) - l.computed;
  LAW(chunk.tokens <= debt && (policy_.chunked || chunk.tokens == debt), chunk.tokens, debt);
  LAW(chunk.context == l.computed, chunk.context, l.computed);
  LAW(chunk.sampled == (chunk.tokens == debt && l.limit > 0), chunk.sampled);
  LAW(!l.token_due && !(l.output > 0 && l.emitted == l.output), "a finished sequence runs on");
  const std::int32_t after_step = chunk.context + chunk.tokens;
  const auto admission = std::find_if(plan.admissions.begin(), plan.admissions.end(),
                                      [&](const Admission& a) { return a.request == chunk.request; });
  if (admission != plan.admissions.end() && !admission->swapped_in)
    l.blocks = admission_blocks(known(l), after_step, l.offer.request.prompt_tokens + l.limit, true);
  if (policy_.take != Take::reserved) l.blocks = std::max(l.blocks, blocks_of(after_step));
  LAW(policy_.prefix_cache || l.blocks * policy_.block_tokens >= after_step, "no place for what is computed",
      l.blocks, after_step);
}

std::int64_t Audit::admission_blocks(std::int32_t known_tokens, std::int32_t after_step, std::int32_t limit,
                                     bool taken) const {
  std::int32_t reserved = after_step;
  if (policy_.reserve == Reserve::known) reserved = known_tokens;
  if (policy_.reserve == Reserve::prompt_and_max) reserved = std::max(known_tokens, limit);
  if (policy_.reserve == Reserve::max_len) reserved = tokens_max_;
  const std::int32_t takes = policy_.take == Take::reserved ? reserved
                             : policy_.take == Take::known  ? known_tokens
                                                            : after_step;
  return blocks_of(std::max(after_step, taken ? takes : std::max(takes, reserved)));
}

void Audit::check_decodes(const StepPlan& plan, std::set<Slot>& slots) {
  LAW(plan.decodes.size() == static_cast<std::size_t>(plan.decode_count));
  std::int64_t sum = 0;
  std::int32_t least = INT32_MAX, most = 0;
  // Slots of those who ended while this plan was pending have no owner any more; their last one is looked up.
  for (const DecodeRow& row : plan.decodes) {
    LAW(slots.insert(row.slot).second, "two grants for one slot", index(row.slot));
    sum += row.context;
    least = std::min(least, row.context);
    most = std::max(most, row.context);
    const auto owner = owners_.find(row.slot);
    if (owner == owners_.end()) {
      LAW(policy_.depth == 1, "a row of somebody who has left");
      continue;
    }
    Life& l = lives_[static_cast<std::size_t>(owner->second)];
    LAW(l.place == Where::resident && l.computed == row.context, row.context, l.computed);
    LAW(known(l) - l.computed == 1, "a decode that owes more than one token");
    LAW(l.emitted < l.output && !l.token_due, "a finished sequence runs on", static_cast<unsigned>(l.id));
    if (policy_.take != Take::reserved) l.blocks = std::max(l.blocks, blocks_of(row.context + 1));
    LAW(policy_.prefix_cache || l.blocks * policy_.block_tokens > row.context,
        "no place for what is computed");
    flight_.decodes.push_back(l.id);
  }
  if (plan.decode_count == 0) return;
  LAW(sum == plan.decode_context_sum && least == plan.decode_context_min && most == plan.decode_context_max,
      sum, plan.decode_context_sum);
}

void Audit::check_totals(const StepPlan& plan) const {
  std::int64_t tokens = plan.decode_count, padding = 0;
  std::int32_t sampled = plan.decode_count, longest = 0;
  for (const Chunk& c : plan.chunks) longest = std::max(longest, c.tokens);
  for (const Chunk& c : plan.chunks) {
    tokens += c.tokens;
    sampled += c.sampled;
    padding += policy_.padded ? longest - c.tokens : 0;
  }
  LAW(tokens == plan.new_tokens && tokens > 0, tokens, plan.new_tokens);
  LAW(sampled == plan.sampled_rows && padding == plan.padding_tokens, sampled, padding);
  LAW(policy_.batch_tokens_max == 0 || tokens <= policy_.batch_tokens_max, "over budget", tokens);
  const auto rows = static_cast<std::int64_t>(plan.chunks.size()) + plan.decode_count;
  LAW(rows <= policy_.sequences_max * (1 + policy_.depth), rows);
  const bool is_pure = plan.chunks.empty() && plan.admissions.empty() && plan.evictions.empty();
  LAW(plan.repeats_max >= 1 && (is_pure || plan.repeats_max == 1), plan.repeats_max);
  if (!is_exact()) return;
  std::int64_t dead_context = 0;
  for (const RequestId id : dead_) dead_context += lives_[static_cast<std::size_t>(id)].computed;
  const bool shows_dead = policy_.padded && plan.decode_count > 0;
  if (shows_dead)
    LAW(plan.dead_rows == static_cast<std::int32_t>(dead_.size()), plan.dead_rows, dead_.size());
  if (shows_dead) LAW(plan.dead_context_sum == dead_context, plan.dead_context_sum, dead_context);
}

void Audit::check_evictions(const StepPlan& plan) const {
  // Somebody yields only so that another one gets its blocks in this very step, or because it cannot go on
  // itself: without the last eviction the step would not have fit.
  const bool is_swapping = policy_.preempt == PreemptMode::swap;
  if (!is_exact() || policy_.prefix_cache || is_swapping || plan.evictions.empty()) return;
  const Life& last = lives_[static_cast<std::size_t>(ids_[index(plan.evictions.back().request)])];
  const std::int64_t wanted = std::max(last.given_up, blocks_of(known(last)));
  LAW(held_blocks(now_) + wanted > usable_, "evicted for nobody", static_cast<unsigned>(last.id), wanted);
}

std::int64_t Audit::held_blocks(Time) const {
  std::int64_t held = 0;
  for (const Life& l : lives_) held += l.place == Where::resident ? l.blocks : 0;
  for (const RequestId id : dead_) held += lives_[static_cast<std::size_t>(id)].blocks;
  return held;
}

void Audit::check_memory(const StepPlan& plan) {
  if (policy_.prefix_cache) {
    std::map<std::int32_t, std::vector<std::uint64_t>> content;
    for (const Life& l : lives_)
      if (l.place == Where::resident) check_table(l, content);
    return;
  }
  const std::int64_t held = held_blocks(now_);
  LAW(held <= usable_, "more blocks in use than there are", held, usable_);
  const bool is_swapping = policy_.preempt == PreemptMode::swap && setup_.capacity.transfers_overlap;
  if (!is_exact() || is_swapping) return;
  LAW(scheduler_.kv_use().blocks_held == held, "blocks leaked or taken twice",
      scheduler_.kv_use().blocks_held, held);
  // The last admission left the watermark free, unless it came into an empty engine that then need not.
  const bool admits = std::any_of(plan.admissions.begin(), plan.admissions.end(),
                                  [](const Admission& a) { return !a.swapped_in; });
  if (admits && policy_.form != Form::prefill_exclusive && owners_.size() > 1)
    LAW(usable_ - held >= watermark_, "below the watermark", held);
}

void Audit::check_table(const Life& l, std::map<std::int32_t, std::vector<std::uint64_t>>& content) const {
  std::int32_t after_step = l.computed;
  for (const Chunk& c : flight_.plan->chunks) after_step += c.slot == l.slot ? c.tokens : 0;
  for (const DecodeRow& r : flight_.plan->decodes) after_step += r.slot == l.slot ? 1 : 0;
  const auto table = scheduler_.block_table(l.slot);
  LAW(static_cast<std::int64_t>(table.size()) >= blocks_of(after_step), "no place for what is computed",
      table.size(), after_step);
  const Request& r = l.offer.request;
  const std::vector<std::uint64_t>& hashes = setup_.items[source_->position(l.id)].hashes;
  std::vector<std::uint64_t> text;
  bool own = false;
  for (std::size_t p = 0; p < table.size(); ++p) {
    const std::int64_t end = static_cast<std::int64_t>(p + 1) * policy_.block_tokens;
    const bool full = end <= after_step;
    const std::size_t piece =
        r.hash_block_tokens > 0 ? static_cast<std::size_t>((end - 1) / r.hash_block_tokens) : 0;
    own = own || end > r.prompt_tokens || r.hash_block_tokens <= 0 || piece >= hashes.size();
    text.push_back(own ? mix(static_cast<std::uint64_t>(l.id) + 77) : hashes[piece]);
    std::vector<std::uint64_t> says = text;
    // Nobody else may have a block that is not full yet.
    if (!full) says.push_back(static_cast<std::uint64_t>(l.id));
    const auto [entry, is_new] = content.try_emplace(table[p], says);
    LAW(is_new || entry->second == says, "one block with two texts", table[p], static_cast<unsigned>(l.id),
        p);
  }
}

void Audit::check_forms(const StepPlan& plan) const {
  bool new_prompt = false, old_prompt = false;
  for (const Admission& a : plan.admissions) new_prompt = new_prompt || !a.swapped_in;
  for (const Chunk& c : plan.chunks) {
    const Life& l = lives_[static_cast<std::size_t>(ids_[index(c.request)])];
    old_prompt = old_prompt || (!l.evicted_before && known(l) - l.computed > 1);
  }
  if (policy_.form == Form::prefill_exclusive)
    LAW(plan.decode_count == 0 || (!new_prompt && !old_prompt), "a decode beside a prompt that runs alone");
  if (policy_.join != Join::any && new_prompt)
    for (const auto& [slot, id] : owners_) {
      const Life& l = lives_[static_cast<std::size_t>(id)];
      const bool joined_now = std::any_of(plan.admissions.begin(), plan.admissions.end(),
                                          [&](const Admission& a) { return a.slot == l.slot; });
      LAW(joined_now, "joined a running batch", static_cast<unsigned>(id));
    }
  if (policy_.join == Join::count_or_timeout && new_prompt) {
    Time oldest = kNever;
    std::int64_t waiting = 0;
    for (const Life& l : lives_)
      if (l.place == Where::waiting || (l.place == Where::resident && l.computed == 0)) {
        ++waiting;
        oldest = std::min(oldest, l.offer.request.arrival);
      }
    LAW(policy_.preempt == PreemptMode::swap || policy_.prefix_cache || waiting >= policy_.join_count ||
            now_ >= after(oldest, policy_.join_timeout),
        "neither N nor the timeout", waiting);
  }
  if (policy_.form != Form::decodes_first || plan.left_out[static_cast<std::size_t>(LeftOut::kv_blocks)] > 0)
    return;
  for (const auto& [slot, id] : owners_) {
    const Life& l = lives_[static_cast<std::size_t>(id)];
    if (known(l) - l.computed != 1 || l.loading_until > Time{}) continue;
    bool granted = false;
    for (const Chunk& c : plan.chunks) granted = granted || c.slot == slot;
    for (const DecodeRow& r : plan.decodes) granted = granted || r.slot == slot;
    LAW(granted, "a decode waits", static_cast<unsigned>(id));
  }
}

const Audit::Life* Audit::head_of_queue() const {
  const Life* head = nullptr;
  for (const Life& l : lives_)
    if (l.place == Where::waiting && (head == nullptr || before_in_queue(l, *head))) head = &l;
  return head;
}

void Audit::check_work_conserved(const StepPlan& plan) const {
  const Life* head = head_of_queue();
  const bool is_swapping = policy_.preempt == PreemptMode::swap;
  if (head == nullptr || head->evicted_since_launch || policy_.join != Join::any || is_swapping) return;
  if (policy_.prefix_cache || !plan.evictions.empty()) return;
  if (static_cast<std::int64_t>(owners_.size() + dead_.size()) >= policy_.sequences_max) return;
  std::int64_t left = policy_.batch_tokens_max > 0 ? policy_.batch_tokens_max : INT32_MAX;
  if (policy_.form != Form::prefill_exclusive || plan.decode_count == 0) left -= plan.new_tokens;
  std::int64_t tokens = std::min<std::int64_t>(known(*head), left);
  if (policy_.chunk_tokens_max > 0) tokens = std::min<std::int64_t>(tokens, policy_.chunk_tokens_max);
  if (tokens < 1 || (!policy_.chunked && tokens < known(*head))) return;
  const auto after_step = static_cast<std::int32_t>(tokens);
  const std::int64_t needed =
      admission_blocks(known(*head), after_step, head->offer.request.prompt_tokens + head->limit, false);
  const bool is_busy = !owners_.empty() || !dead_.empty();
  const std::int64_t spare = !policy_.watermark_only_when_busy || is_busy ? watermark_ : 0;
  const bool fits = usable_ - held_blocks(now_) - needed >= spare &&
                    (policy_.place == Place::paged || scheduler_.kv_use().largest_free_range >= needed);
  LAW(!fits, "the head of the queue fits and is left out", static_cast<unsigned>(head->id), needed);
}

void Audit::check_reasons(const StepPlan& plan) const {
  std::int64_t told = 0;
  for (const std::int32_t count : plan.left_out) told += count;
  const std::int64_t granted = static_cast<std::int64_t>(plan.chunks.size()) + plan.decode_count;
  LAW(told == alive_ - granted, "left out without a reason, or with two", told, alive_ - granted);
}

}  // namespace foretoken::laws

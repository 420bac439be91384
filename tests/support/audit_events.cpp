// Books kept from events: who is where, how many tokens, when.
#include <algorithm>
#include <cmath>

#include "tests/support/audit.hpp"

namespace foretoken::laws {

Audit::Audit(const Setup& setup, const Scheduler& scheduler, Executor& priced, ListSource* source)
    : setup_(setup), policy_(setup.policy), scheduler_(scheduler), priced_(priced), source_(source) {
  usable_ = setup.capacity.kv_blocks - policy_.null_blocks;
  watermark_ = static_cast<std::int64_t>(std::ceil(policy_.watermark * static_cast<double>(usable_)));
  // Where the watermark binds only beside others, a lone request may fill the pool.
  const std::int64_t kept = policy_.watermark_only_when_busy ? 0 : watermark_;
  std::int64_t most = (usable_ - kept) * policy_.block_tokens;
  most = std::clamp<std::int64_t>(most, 0, setup.capacity.model_tokens_max);
  if (!policy_.chunked && policy_.batch_tokens_max > 0)
    most = std::min<std::int64_t>(most, policy_.batch_tokens_max);
  tokens_max_ = static_cast<std::int32_t>(most);
  LAW(tokens_max_ == scheduler.sequence_tokens_max(), tokens_max_, scheduler.sequence_tokens_max());
}

void Audit::clock(Time t) {
  LAW(t >= now_, picoseconds(t), picoseconds(now_));
  request_time_ += alive_ * (t - now_).count();
  now_ = t;
}

std::int64_t Audit::blocks_of(std::int64_t tokens) const {
  return (tokens + policy_.block_tokens - 1) / policy_.block_tokens;
}

std::int64_t Audit::order_key(const Life& l) const {
  const Request& r = l.offer.request;
  switch (policy_.order) {
    case Order::fcfs: return l.queue_rank;
    case Order::priority: return r.priority;
    case Order::shortest_prompt: return r.prompt_tokens;
    case Order::shortest_predicted:
      return r.predicted_output_tokens > 0 ? r.predicted_output_tokens : INT32_MAX;
  }
  return 0;
}

bool Audit::before_in_queue(const Life& a, const Life& b) const {
  const std::int64_t x = order_key(a), y = order_key(b);
  return x != y ? x < y : a.id < b.id;
}

void Audit::on_arrival(Handle handle, const Offer& offer, Time t) {
  clock(t);
  const auto id = static_cast<std::size_t>(offer.request.id);
  LAW(t == offer.request.arrival, picoseconds(t), picoseconds(offer.request.arrival));
  LAW(in_use_.insert(index(handle)).second, "a handle in use is given away", index(handle));
  if (lives_.size() <= id) lives_.resize(id + 1);
  if (ids_.size() <= index(handle)) ids_.resize(index(handle) + 1, -1);
  ids_[index(handle)] = static_cast<std::int64_t>(id);
  Life& l = lives_[id];
  LAW(l.place == Where::gone && !l.ever_admitted, id);
  l = Life{};
  l.offer = offer;
  l.id = offer.request.id;
  l.place = Where::waiting;
  l.queue_rank = ++last_rank_;
  std::int32_t most = offer.request.max_new_tokens;
  if (offer.output_tokens == 0) most = 0;
  if (most < 0) most = tokens_max_ - offer.request.prompt_tokens;
  l.limit = most;
  l.output = std::min(most, offer.output_tokens);
  // Fit ever: what came through the door could be served alone, by the formula of run time.
  const std::int32_t longest = offer.request.prompt_tokens + most;
  LAW(most >= 0 && longest <= tokens_max_ && longest <= setup_.capacity.model_tokens_max, longest);
  LAW(admission_blocks(longest, longest, longest, true) +
              (policy_.watermark_only_when_busy ? 0 : watermark_) <=
          usable_,
      longest);
  if (alive_++ == 0) busy_from_ = t;
  if (t > flight_.window.begin) flight_.first_arrival_within = std::min(flight_.first_arrival_within, t);
  LAW(scheduler_.audit());
}

void Audit::on_reject(const Offer& offer, Refusal why, Time t) {
  clock(t);
  ++rejected_;
  const Request& r = offer.request;
  const std::int32_t asked = offer.output_tokens == 0 ? 0 : r.max_new_tokens < 0 ? 1 : r.max_new_tokens;
  const std::int32_t longest = r.prompt_tokens + asked;
  if (why == Refusal::exceeds_context)
    LAW(longest > setup_.capacity.model_tokens_max, longest);
  else
    LAW(why == Refusal::never_fits && longest > tokens_max_, longest, tokens_max_);
  LAW(scheduler_.audit());
}

void Audit::check_victim(const Life& victim) const {
  if (!is_exact() || (policy_.preempt == PreemptMode::swap && setup_.capacity.transfers_overlap)) return;
  for (const auto& [slot, id] : owners_) {
    const Life& l = lives_[static_cast<std::size_t>(id)];
    if (l.place != Where::resident || l.id == victim.id) continue;
    const Request &a = victim.offer.request, &b = l.offer.request;
    const bool last = policy_.victim == Victim::last_admitted;
    const bool right = last                       ? victim.admitted > l.admitted
                       : a.priority != b.priority ? a.priority > b.priority
                       : a.arrival != b.arrival   ? a.arrival > b.arrival
                                                  : victim.admitted > l.admitted;
    LAW(right, "another one should have yielded", static_cast<unsigned>(victim.id),
        static_cast<unsigned>(l.id));
  }
}

void Audit::on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) {
  clock(t);
  Life& l = life(eviction.request);
  LAW(l.place == Where::resident && l.slot == eviction.slot, static_cast<unsigned>(l.id));
  LAW(eviction.context_tokens == l.computed, eviction.context_tokens, l.computed);
  LAW(emitted == l.emitted, "preemption never takes a token back", emitted, l.emitted);
  LAW(policy_.preempt != PreemptMode::none && policy_.take != Take::reserved, "promised not to preempt");
  check_victim(l);
  owners_.erase(l.slot);
  l.slot = kNoSlot;
  l.evicted_since_launch = true;
  l.evicted_before = true;
  l.given_up = l.blocks;
  ++preemptions_;
  LAW(++l.evictions <= steps_bound(), "preempted again and again", static_cast<unsigned>(l.id));
  if (eviction.swapped) {
    LAW(policy_.preempt == PreemptMode::swap);
    l.place = Where::swapped;
    std::int64_t host = 0;
    for (const Life& other : lives_) host += other.place == Where::swapped ? other.blocks : 0;
    LAW(host <= setup_.capacity.host_blocks, host);
    return;
  }
  l.place = Where::waiting;
  l.computed = 0;
  l.blocks = 0;
  l.queue_rank = --first_rank_;
}

void Audit::check_queue_order(const Life& admitted) {
  // At depth 1 only those that were there when the step before began are sure to have been seen.
  const Time seen = is_exact() ? now_ : last_decision_;
  for (Life& l : lives_) {
    if (l.place != Where::waiting || l.id == admitted.id || !before_in_queue(l, admitted)) continue;
    if (l.offer.request.arrival > seen || (!is_exact() && l.evicted_since_launch)) continue;
    LAW(policy_.head_of_line == HeadOfLine::bounded_skip, "overtaken", static_cast<unsigned>(l.id), "by",
        static_cast<unsigned>(admitted.id));
    LAW(++l.overtaken <= policy_.overtakes_max, l.overtaken, static_cast<unsigned>(l.id), picoseconds(now_));
    if (is_exact() && policy_.overtake_age_max != kForever)
      LAW(now_ - l.offer.request.arrival < policy_.overtake_age_max, static_cast<unsigned>(l.id));
  }
}

void Audit::on_admit(const Admission& a, Time t) {
  clock(t);
  Life& l = life(a.request);
  LAW(l.place == (a.swapped_in ? Where::swapped : Where::waiting), static_cast<unsigned>(l.id));
  const auto owner = owners_.find(a.slot);
  LAW(owner == owners_.end(), "a slot with an owner is given away", index(a.slot));
  LAW(a.known_tokens == known(l), a.known_tokens, known(l));
  LAW(a.facts->id == l.id && t >= l.offer.request.arrival);
  if (a.swapped_in) {
    LAW(a.cached_tokens == l.computed, a.cached_tokens, l.computed);
  } else {
    LAW(a.cached_tokens < a.known_tokens && a.cached_tokens % policy_.block_tokens == 0, a.cached_tokens);
    LAW(policy_.prefix_cache || a.cached_tokens == 0, a.cached_tokens);
    check_queue_order(l);
    if (policy_.swapped_first && is_exact())
      for (const Life& other : lives_) LAW(other.place != Where::swapped, "admitted before the swapped");
  }
  owners_[a.slot] = l.id;
  l.place = Where::resident;
  l.slot = a.slot;
  l.computed = a.cached_tokens;
  l.admitted = ++admissions_;
  l.ever_admitted = true;
  l.overtaken = 0;
  const auto held = static_cast<std::int64_t>(owners_.size());
  LAW(!is_exact() || held <= policy_.sequences_max, "more residents than slots", held);
}

void Audit::check_record(const StepRecord& record) const {
  std::int64_t resident = static_cast<std::int64_t>(dead_.size()), waiting = 0, swapped = 0;
  for (const Life& l : lives_) {
    resident += l.place == Where::resident;
    waiting += l.place == Where::waiting;
    swapped += l.place == Where::swapped;
  }
  LAW(resident == record.resident && waiting == record.waiting && swapped == record.swapped, resident,
      record.resident, waiting, record.waiting, swapped, record.swapped);
  LAW(record.kv.blocks_total == usable_);
  LAW(record.kv.blocks_held >= record.kv.blocks_touched && record.kv.largest_free_range <= usable_);
  std::int64_t context = 0;
  for (const Life& l : lives_) context += l.place == Where::resident ? l.computed : 0;
  for (const RequestId id : dead_) context += lives_[static_cast<std::size_t>(id)].computed;
  LAW(record.kv.context_tokens == context, record.kv.context_tokens, context);
  const bool is_swapping = policy_.preempt == PreemptMode::swap && setup_.capacity.transfers_overlap;
  if (policy_.prefix_cache || is_swapping) return;
  const std::int64_t held = held_blocks(record.begin);
  LAW(record.kv.blocks_held == held, "blocks leaked or taken twice", record.kv.blocks_held, held);
}

void Audit::on_step(const StepRecord& record) {
  const Window& window = flight_.window;
  LAW(record.plan == flight_.plan && record.repeats >= 1 && record.repeat_first == flight_.reported);
  LAW(record.repeat_first + record.repeats <= record.plan->repeats_max, record.repeat_first, record.repeats);
  if (window.end_known) LAW(record.end() == window.end_after(record.repeat_first + record.repeats));
  LAW(record.begin >= end_of_last_ && record.end() > record.begin, picoseconds(record.begin));
  clock(record.end());
  end_of_last_ = record.end();
  flight_.reported += record.repeats;
  std::int32_t emitting = 0;
  for (const RequestId id : flight_.decodes) {
    Life& l = lives_[static_cast<std::size_t>(id)];
    if (l.place == Where::gone) continue;
    ++emitting;
    LAW(l.place == Where::resident);
    l.computed += static_cast<std::int32_t>(record.repeats);
    l.emitted += static_cast<std::int32_t>(record.repeats);
    LAW(l.emitted <= l.output, "a token too many", static_cast<unsigned>(id), l.emitted, l.output);
    if (policy_.take != Take::reserved) l.blocks = std::max(l.blocks, blocks_of(l.computed));
  }
  LAW(emitting == record.decode_emissions, emitting, record.decode_emissions);
  for (const Chunk& chunk : record.plan->chunks) {
    Life& l = life(chunk.request);
    if (l.place == Where::gone) continue;
    LAW(record.repeats == 1 && l.place == Where::resident);
    l.computed += chunk.tokens;
    l.token_due = chunk.sampled;
  }
  if (is_exact()) check_record(record);
  LAW(scheduler_.audit());
  ++steps_without_progress_;
  if (emitting > 0) progress();
  LAW(steps_without_progress_ <= steps_bound(), "nobody got a token for so many steps:", steps_bound());
}

void Audit::progress() {
  steps_without_progress_ = 0;
  for (Life& l : lives_) l.evictions = 0;
}

std::int64_t Audit::steps_bound() const {
  const std::int64_t budget = policy_.batch_tokens_max > 0 ? policy_.batch_tokens_max : tokens_max_;
  const std::int64_t least =
      policy_.chunk_tokens_max > 0 ? std::min<std::int64_t>(policy_.chunk_tokens_max, budget) : budget;
  return (tokens_max_ / least + 3) * (policy_.sequences_max + 2) * 2;
}

void Audit::on_token(Handle handle, std::int32_t emitted, Time t) {
  LAW(t == end_of_last_, picoseconds(t), picoseconds(end_of_last_));
  clock(t);
  Life& l = life(handle);
  LAW(l.place == Where::resident && l.token_due, static_cast<unsigned>(l.id));
  l.token_due = false;
  LAW(emitted == ++l.emitted && l.emitted <= l.output, emitted, l.emitted, l.output);
  progress();
}

void Audit::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  clock(t);
  Life& l = life(handle);
  LAW(l.place != Where::gone && emitted == l.emitted && !l.token_due, emitted, l.emitted);
  if (how == Ending::finished) {
    LAW(emitted == l.output && t == end_of_last_ && l.place == Where::resident, emitted, l.output);
    LAW(l.computed == l.offer.request.prompt_tokens + std::max(0, l.output - 1), l.computed);
  } else {
    const bool delivered = l.emitted > 0 && policy_.delivery == Delivery::streamed;
    const Time lost = delivered ? kNever : after(l.offer.request.arrival, l.offer.patience);
    const Time left = after(l.offer.request.arrival, l.offer.cancel_after);
    LAW(how == Ending::cancelled && t >= std::min(lost, left), picoseconds(t));
  }
  if (l.place == Where::resident) {
    owners_.erase(l.slot);
    if (policy_.release_at_batch_end) dead_.push_back(l.id);
  }
  l.place = Where::gone;
  --alive_;
  ++ended_;
  life_time_ += (t - l.offer.request.arrival).count();
  progress();
}

void Audit::on_batch_end(Time t) {
  clock(t);
  LAW(policy_.release_at_batch_end && !dead_.empty());
  if (is_exact())
    for (const Life& l : lives_) LAW(l.place != Where::resident, "the batch has not ended");
  dead_.clear();
}

void Audit::on_release(Handle handle) {
  LAW(in_use_.erase(index(handle)) == 1 && life(handle).place == Where::gone, index(handle));
  priced_.on_release(handle);
}

void Audit::finish(const RunResult& result) {
  LAW(result.drained, "work is left over");
  for (const Life& l : lives_) LAW(l.place == Where::gone, "lost", static_cast<unsigned>(l.id));
  LAW(scheduler_.audit() && scheduler_.alive() == 0 && scheduler_.resident() == 0 &&
      scheduler_.waiting() == 0);
  const KvUse use = scheduler_.kv_use();
  LAW(use.blocks_held == 0 && use.host_blocks_held == 0, use.blocks_held, use.host_blocks_held);
  LAW(use.blocks_touched == 0 && use.context_tokens == 0 && use.largest_free_range == usable_);
  LAW(in_use_.empty(), in_use_.size());
  if (source_ != nullptr)
    LAW(rejected_ + ended_ == static_cast<std::int64_t>(setup_.items.size()), rejected_, ended_);
  LAW(request_time_ == life_time_, request_time_, life_time_);
}

EventLog audited(const Setup& given) {
  Setup setup = given;
  setup.scheduler.columns = true;
  Stage stage(setup);
  EventLog log;
  Audit audit(stage.setup, stage.scheduler, stage.executor, &stage.source);
  Both both(audit, log);
  audit.finish(stage.run(audit, both));
  return log;
}

}  // namespace foretoken::laws

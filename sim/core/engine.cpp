#include "sim/core/engine.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {

Engine::Engine(Scheduler& scheduler, Executor& executor, Observer& observer, EngineOptions options)
    : scheduler_(scheduler),
      executor_(executor),
      observer_(observer),
      options_(options),
      depth_(scheduler.policy().depth) {
  FT_CHECK(depth_ == 0 || depth_ == 1, depth_);
}

Time Engine::next_event() const {
  if (flight_.plan != nullptr) {
    if (!flight_.window.end_known) return kNever;
    return flight_.planned_next ? flight_.end : plan_time();
  }
  Time next = wake_;
  if (!deadlines_.empty()) next = std::min(next, deadlines_.top().at);
  for (const Transfer& transfer : transfers_) next = std::min(next, transfer.at);
  return next;
}

Time Engine::join() {
  FT_CHECK(must_join());
  const Time end = executor_.complete(*flight_.plan, flight_.window);
  FT_CHECK(end >= flight_.window.begin);
  flight_.window.first = end - flight_.window.begin;
  flight_.window.growth = Duration{};
  flight_.window.end_known = true;
  flight_.end = end;
  return end;
}

void Engine::land(Time t) {
  if (flight_.plan == nullptr || !flight_.window.end_known) return;
  if (!flight_.planned_next && plan_time() == t && flight_.repeats > depth_) {
    // The moment at which the step after this window is decided: at depth 0 the window's end, at depth 1 the
    // start of its last repeat.
    scheduler_.extend(flight_.repeats);
    if (depth_ == 0) return commit(flight_.repeats, true);
    return commit(flight_.repeats - 1, false);
  }
  if (flight_.end == t) commit(flight_.repeats - flight_.committed, true);
  FT_CHECK(flight_.plan == nullptr || t < flight_.end, picoseconds(t));
}

std::int32_t Engine::emitted(const Truth& truth) const {
  return truth.in_lock_step ? static_cast<std::int32_t>(committed_tick_ + truth.emitted_base) : truth.emitted;
}

void Engine::report(std::int64_t repeats, std::int64_t repeat_first) {
  const StepPlan& plan = *flight_.plan;
  StepRecord record;
  record.plan = &plan;
  record.begin = flight_.window.end_after(repeat_first);
  record.first = flight_.window.first + flight_.window.growth * repeat_first;
  record.growth = flight_.window.growth;
  record.repeats = repeats;
  record.repeat_first = repeat_first;
  record.decode_emissions = plan.decode_count - plan.wasted_rows;
  record.resident = scheduler_.resident();
  record.waiting = static_cast<std::int32_t>(scheduler_.waiting());
  record.swapped = static_cast<std::int32_t>(scheduler_.swapped());
  record.kv = scheduler_.kv_use();
  observer_.on_step(record);
}

void Engine::emit_chunks(Time t) {
  for (const Chunk& chunk : flight_.plan->chunks) {
    Truth& truth = truth_[index(chunk.request)];
    if (!chunk.sampled || !truth.alive) continue;
    // Until its step has ended, the token that brings a row into lock-step does not count.
    truth.in_lock_step = true;
    observer_.on_token(chunk.request, emitted(truth), t);
  }
}

void Engine::commit(std::int64_t repeats, bool step_done) {
  const Time t = flight_.window.end_after(flight_.committed + repeats);
  if (repeats > 0) report(repeats, flight_.committed);
  flight_.committed += repeats;
  committed_tick_ = flight_.plan->tick - (flight_.repeats - flight_.committed);
  if (step_done) emit_chunks(t);
  ended_.clear();
  ends_.pop(committed_tick_, [&](std::uint32_t handle) { ended_.push_back(Handle{handle}); });
  if (!ended_.empty()) changed_since_plan_ = true;
  if (step_done) flight_ = Flight{};
  scheduler_.commit(step_done, ended_);
  for (const Handle handle : ended_) finish(handle, Ending::finished, t);
  if (scheduler_.take_batch_end()) observer_.on_batch_end(t);
  // A plan that moves nobody is carried out now, before handles that it names can be given to new requests.
  if (step_done && pending_ != nullptr && pending_->new_tokens == 0)
    apply_stepless(*std::exchange(pending_, nullptr), t);
  drain_released();
}

void Engine::finish(Handle handle, Ending how, Time t) {
  Truth& truth = truth_[index(handle)];
  const std::int32_t made = emitted(truth);
  FT_CHECK(how != Ending::finished || made == truth.output_tokens, made, truth.output_tokens);
  if (ends_.contains(static_cast<std::uint32_t>(index(handle))))
    ends_.erase(static_cast<std::uint32_t>(index(handle)));
  truth.alive = false;
  truth.in_lock_step = false;
  observer_.on_end(handle, how, made, t);
  endings_.push_back({truth.id, t, how});
}

void Engine::drain_released() {
  for (const Handle handle : scheduler_.released()) executor_.on_release(handle);
  scheduler_.clear_released();
}

bool Engine::submit(const Offer& offer, Time t) {
  Request request = offer.request;
  if (offer.output_tokens == 0) request.max_new_tokens = 0;
  const Acceptance acceptance = scheduler_.submit(request);
  if (acceptance.refusal != Refusal::none) {
    observer_.on_reject(offer, acceptance.refusal, t);
    endings_.push_back({request.id, t, Ending::rejected});
    return false;
  }
  const Handle handle = acceptance.handle;
  if (index(handle) >= truth_.size()) {
    truth_.resize(index(handle) + 1);
    ends_.grow(truth_.size());
  }
  Truth& truth = truth_[index(handle)];
  truth = Truth{};
  truth.id = request.id;
  truth.output_tokens = std::min(offer.output_tokens, scheduler_.request(handle).max_new_tokens);
  truth.prompt_tokens = request.prompt_tokens;
  truth.alive = true;
  if (offer.patience != kForever)
    deadlines_.push({after(request.arrival, offer.patience), request.id, handle, true});
  if (offer.cancel_after != kForever)
    deadlines_.push({after(request.arrival, offer.cancel_after), request.id, handle, false});
  executor_.on_accept(handle, offer);
  observer_.on_arrival(handle, offer, t);
  changed_since_plan_ = true;
  cut(t);
  return true;
}

void Engine::cut(Time t) {
  if (flight_.plan == nullptr || flight_.planned_next || flight_.repeats <= 1) return;
  std::int64_t low = 1;
  std::int64_t high = flight_.repeats;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (flight_.window.end_after(middle) >= t)
      high = middle;
    else
      low = middle + 1;
  }
  flight_.repeats = std::min(flight_.repeats, low + depth_);
  flight_.end = flight_.window.end_after(flight_.repeats);
}

std::int64_t Engine::repeats_allowed(const StepPlan& plan) const {
  std::int64_t repeats = std::min(plan.repeats_max, flight_.window.repeats_max);
  if (!options_.skip_ahead || (depth_ == 1 && changed_since_plan_)) return 1;
  if (repeats <= 1) return 1;
  // The end of an answer is seen when its step has ended; at depth 1 one more step has been planned by then.
  const std::int64_t before = plan.tick - 1;
  repeats = std::min(repeats, TickWheel::kLength - 2);
  return std::min(repeats, ends_.next(before, before + repeats) - before + depth_);
}

void Engine::apply(const StepPlan& plan, Time t) {
  for (const Eviction& eviction : plan.evictions) {
    const Truth& truth = truth_[index(eviction.request)];
    if (truth.alive) observer_.on_preempt(eviction, emitted(truth), t);
  }
  for (const Admission& admission : plan.admissions)
    if (truth_[index(admission.request)].alive) observer_.on_admit(admission, t);
  for (const LockStepChange& change : plan.lock_step_changes) {
    Truth& truth = truth_[index(change.request)];
    if (!truth.alive) continue;
    if (change.entered) {
      const std::int32_t made = change.context - truth.prompt_tokens + (truth.output_tokens > 0 ? 1 : 0);
      truth.emitted_base = made - plan.tick;
      ends_.insert(static_cast<std::uint32_t>(index(change.request)), plan.tick + truth.output_tokens - made);
    } else {
      truth.emitted = emitted(truth);
      truth.in_lock_step = false;
      ends_.erase(static_cast<std::uint32_t>(index(change.request)));
    }
  }
  for (const Copy& copy : plan.copies) {
    // Serial copies are part of the step; the others end by an event, even those that take no time.
    if (scheduler_.capacity().transfers_overlap)
      transfers_.push_back({executor_.transfer_end(copy, t), copy});
  }
}

void Engine::apply_stepless(const StepPlan& plan, Time t) {
  apply(plan, t);
  observer_.on_stepless(plan, t);
}

void Engine::launch(StepPlan& plan, Time t) {
  apply(plan, t);
  flight_.plan = &plan;
  flight_.window = executor_.launch(plan, t);
  FT_CHECK(flight_.window.first > Duration{} || !flight_.window.end_known);
  flight_.repeats = repeats_allowed(plan);
  // At depth 1 a client may leave at the very start of this window, and the next plan, made then, sees it.
  if (!deadlines_.empty() && deadlines_.top().at <= t) flight_.repeats = 1;
  flight_.end = flight_.window.end_after(flight_.repeats);
  wake_ = kNever;
  if (flight_.repeats <= 1) return;
  if (!deadlines_.empty()) cut(deadlines_.top().at);
  for (const Transfer& transfer : transfers_) cut(transfer.at);
}

void Engine::settle_due(Time t) {
  for (std::size_t i = 0; i < transfers_.size();) {
    if (transfers_[i].at > t) {
      ++i;
      continue;
    }
    scheduler_.transfer_done(transfers_[i].copy);
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i));
    changed_since_plan_ = true;
  }
  while (!deadlines_.empty() && deadlines_.top().at <= t) {
    const Deadline due = deadlines_.top();
    deadlines_.pop();
    const Truth& truth = truth_[index(due.handle)];
    if (!truth.alive || truth.id != due.id) continue;
    const bool delivered = emitted(truth) > 0 && scheduler_.policy().delivery == Delivery::streamed;
    if (due.only_before_first_token && delivered) continue;
    scheduler_.cancel(due.handle);
    finish(due.handle, Ending::cancelled, t);
    if (scheduler_.take_batch_end()) observer_.on_batch_end(t);
    changed_since_plan_ = true;
  }
  drain_released();
}

void Engine::plan_next(Time t) {
  const Decision decision = scheduler_.plan(t);
  pending_ = decision.plan;
  changed_since_plan_ = false;
  flight_.planned_next = true;
}

void Engine::start_at(Time t) {
  // A plan may only evict and so make room for the next one; it cannot do so twice.
  for (int tries = 0;; ++tries) {
    FT_CHECK(tries < 3);
    const Decision decision = scheduler_.plan(t);
    changed_since_plan_ = false;
    if (decision.runs()) return launch(*decision.plan, t);
    wake_ = decision.idle_until;
    FT_CHECK(wake_ > t, picoseconds(t));
    if (decision.plan == nullptr) {
      // Work implies that a token moves, or that something is known to come.
      FT_CHECK(scheduler_.alive() == 0 || wake_ != kNever || !transfers_.empty(), scheduler_.waiting(),
               scheduler_.resident());
      return;
    }
    apply_stepless(*decision.plan, t);
    if (!transfers_.empty()) return;
  }
}

void Engine::decide(Time t) {
  if (flight_.plan != nullptr) {
    // The repeats before the last one must have been taken in: an arrival may have cut the window to this
    // very moment.
    if (flight_.planned_next || depth_ == 0 || flight_.committed != flight_.repeats - 1) return;
    settle_due(t);
    return plan_next(t);
  }
  if (pending_ != nullptr) launch(*std::exchange(pending_, nullptr), t);
  settle_due(t);
  if (flight_.plan == nullptr) start_at(t);
  if (depth_ == 1 && flight_.plan != nullptr && flight_.repeats == 1) plan_next(t);
}

}  // namespace foretoken

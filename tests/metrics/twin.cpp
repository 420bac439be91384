#include "tests/metrics/twin.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken::test {

void Twin::on_arrival(Handle handle, const Offer& offer, Time) {
  Life& life = alive_[handle];
  life = Life{};
  life.offer = offer;
  life.booked_until = picoseconds(offer.request.arrival);
}

void Twin::on_reject(const Offer& offer, Refusal, Time t) {
  RequestRecord record;
  record.id = offer.request.id;
  record.outcome = Outcome::refused;
  record.arrival_ps = picoseconds(offer.request.arrival);
  record.end_ps = picoseconds(t);
  records[static_cast<std::uint32_t>(offer.request.id)] = record;
  life_sum += record.end_ps - record.arrival_ps;
}

/// Time in which nothing was computed for the request, by what it waited for.
void Twin::book(Life& life, std::int64_t until) {
  const std::int64_t passed = until - life.booked_until;
  if (life.started)
    life.stalled += passed;
  else if (life.preemptions > 0)
    life.preempted += passed;
  else
    life.queue += passed;
  life.booked_until = until;
}

void Twin::on_admit(const Admission& admission, Time) {
  Life& life = alive_[admission.request];
  life.admitted = true;
  if (!life.admitted_before) life.cached = admission.cached_tokens;
  life.admitted_before = true;
  life.decoding = admission.swapped_in && !life.tokens.empty();
}

void Twin::on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) {
  Life& life = alive_[eviction.request];
  life.was_computed.resize(
      std::max<std::size_t>(life.was_computed.size(), static_cast<std::size_t>(eviction.context_tokens)), 1);
  std::fill_n(life.was_computed.begin(), eviction.context_tokens, 1);
  if (life.lock_step && emitted == static_cast<std::int32_t>(life.tokens.size()) + 1) {
    life.leaves_after_step = true;
    ++life.preemptions;
    return;
  }
  book(life, picoseconds(t));
  ++life.preemptions;
  life.admitted = life.started = life.lock_step = false;
}

void Twin::token(Life& life, std::int64_t t) {
  if (!life.tokens.empty()) {
    gaps.push_back(t - life.tokens.back());
    class_gaps[life.offer.request.slo_class].push_back(gaps.back());
  }
  life.tokens.push_back(t);
}

void Twin::on_step(const StepRecord& record) {
  for (const LockStepChange& change : record.plan->lock_step_changes) {
    const auto at = alive_.find(change.request);
    if (record.repeat_first > 0 || change.entered || at == alive_.end() || !at->second.lock_step) continue;
    at->second.lock_step = false;
    at->second.decoding = true;
  }
  std::int64_t begin = picoseconds(record.begin);
  for (std::int64_t j = 0; j < record.repeats; ++j) {
    const std::int64_t end = begin + (record.first + record.growth * j).count();
    for (const Chunk& chunk : record.plan->chunks) {
      Life& life = alive_[chunk.request];
      book(life, begin);
      life.started = true;
      (life.decoding ? life.decode : life.prefill) += end - begin;
      life.booked_until = end;
      const auto last = static_cast<std::size_t>(chunk.context + chunk.tokens);
      if (life.was_computed.size() < last) life.was_computed.resize(last);
      for (auto p = static_cast<std::size_t>(chunk.context); p < last; ++p) {
        recomputed += life.was_computed[p];
        life.was_computed[p] = 1;
      }
      // What a cache provided counts as having been there.
      std::fill_n(life.was_computed.begin(), chunk.context, 1);
    }
    if (record.decode_emissions > 0) {
      for (auto& [handle, life] : alive_) {
        if (!life.lock_step) continue;
        book(life, begin);
        life.decode += end - begin;
        life.booked_until = end;
        token(life, end);
        if (!life.leaves_after_step) continue;
        life.leaves_after_step = life.admitted = life.started = life.lock_step = false;
      }
    }
    begin = end;
  }
}

void Twin::on_token(Handle handle, std::int32_t emitted, Time t) {
  Life& life = alive_[handle];
  token(life, picoseconds(t));
  FT_CHECK(static_cast<std::int32_t>(life.tokens.size()) == emitted);
  life.lock_step = true;
  life.decoding = false;
}

RequestRecord Twin::record_of(const Life& life, std::int64_t t, Outcome outcome) const {
  RequestRecord record;
  record.id = life.offer.request.id;
  record.outcome = outcome;
  record.prompt_tokens = life.offer.request.prompt_tokens;
  record.output_tokens = static_cast<std::int32_t>(life.tokens.size());
  record.cached_tokens = life.cached;
  record.preemptions = life.preemptions;
  record.arrival_ps = picoseconds(life.offer.request.arrival);
  record.end_ps = t;
  record.value_ps.fill(-1);
  record.value_ps[index(Metric::queue_time)] = life.queue;
  record.value_ps[index(Metric::preempted_time)] = life.preempted;
  record.value_ps[index(Metric::prefill_time)] = life.prefill;
  record.value_ps[index(Metric::decode_time)] = life.decode;
  record.value_ps[index(Metric::stalled_time)] = life.stalled;
  const auto n = static_cast<std::int64_t>(life.tokens.size());
  for (std::size_t k = 1; k < life.tokens.size(); ++k)
    record.value_ps[index(Metric::stall_max)] =
        std::max(record.value_ps[index(Metric::stall_max)], life.tokens[k] - life.tokens[k - 1]);
  if (n > 1)
    record.value_ps[index(Metric::tpot)] = (life.tokens.back() - life.tokens.front() + (n - 1) / 2) / (n - 1);
  return record;
}

void Twin::deliver(RequestRecord record, const std::vector<std::int64_t>& tokens, std::int64_t t) {
  const auto n = static_cast<std::int64_t>(tokens.size());
  const std::int64_t e2e = t - record.arrival_ps;
  const bool finished = record.outcome == Outcome::finished;
  if (finished) record.value_ps[index(Metric::e2e)] = e2e;
  if (finished && n > 0) record.value_ps[index(Metric::ntpot)] = (e2e + n / 2) / n;
  if (n > 0 && delivery_ == Delivery::streamed)
    record.value_ps[index(Metric::ttft)] = tokens.front() - record.arrival_ps;
  else if (n > 0 && finished)
    record.value_ps[index(Metric::ttft)] = e2e;
  records[static_cast<std::uint32_t>(record.id)] = record;
}

void Twin::on_end(Handle handle, Ending how, std::int32_t, Time t) {
  Life& life = alive_[handle];
  const std::int64_t now = picoseconds(t);
  book(life, now);
  life_sum += now - picoseconds(life.offer.request.arrival);
  const bool finished = how == Ending::finished;
  const RequestRecord record = record_of(life, now, finished ? Outcome::finished : Outcome::cancelled);
  if (finished && delivery_ == Delivery::batch_end)
    held_.push_back({record, life.tokens});
  else
    deliver(record, life.tokens, now);
  alive_.erase(handle);
}

void Twin::on_batch_end(Time t) {
  for (const Held& held : held_) deliver(held.record, held.tokens, picoseconds(t));
  held_.clear();
}

void Twin::finish_run(Time t) {
  for (auto& [handle, life] : alive_) {
    book(life, picoseconds(t));
    life_sum += picoseconds(t) - picoseconds(life.offer.request.arrival);
    deliver(record_of(life, picoseconds(t), Outcome::unfinished), life.tokens, picoseconds(t));
  }
  for (Held& held : held_) {
    held.record.outcome = Outcome::unfinished;
    deliver(held.record, held.tokens, picoseconds(t));
  }
}

}  // namespace foretoken::test

#include "tests/metrics/fake_run.hpp"

#include <algorithm>

namespace foretoken::test {
namespace {

Time at(std::int64_t ps) { return Time(Duration(ps)); }

}  // namespace

std::vector<Handle> FakeRun::in_state(State state) const {
  std::vector<Handle> handles;
  for (const auto& [handle, sequence] : alive_)
    if (sequence.state == state) handles.push_back(handle);
  return handles;
}

void FakeRun::arrive(Observer& observer) {
  for (std::int64_t n = draw_.between(0, 2); n > 0; --n) {
    Offer offer;
    offer.request.id = static_cast<RequestId>(next_id_++);
    // Seen late, as arrivals in the middle of a step are.
    offer.request.arrival = at(std::max<std::int64_t>(0, now_ - draw_.between(0, 300)));
    offer.request.prompt_tokens = static_cast<std::int32_t>(draw_.between(1, 60));
    offer.request.slo_class = static_cast<std::uint16_t>(draw_.between(0, options_.classes - 1));
    offer.output_tokens = static_cast<std::int32_t>(draw_.between(0, 12));
    if (draw_.chance(0.05)) {
      observer.on_reject(offer, draw_.chance(0.5) ? Refusal::never_fits : Refusal::exceeds_context, at(now_));
      continue;
    }
    Handle handle{};
    if (free_.empty()) {
      handle = static_cast<Handle>(handles_++);
    } else {
      handle = free_.back();
      free_.pop_back();
    }
    alive_[handle].offer = offer;
    observer.on_arrival(handle, offer, at(now_));
  }
}

void FakeRun::finish(Observer& observer, Handle handle, Ending how) {
  observer.on_end(handle, how, alive_[handle].emitted, at(now_));
  alive_.erase(handle);
  free_.push_back(handle);
}

void FakeRun::preempt(Observer& observer, Handle handle, std::int32_t emitted, bool keep_slot) {
  Sequence& sequence = alive_[handle];
  sequence.swapped = draw_.chance(0.3);
  const Eviction eviction{sequence.slot, handle, sequence.computed, sequence.swapped};
  // While a step is in flight its plan is already made: the eviction belongs to none here.
  if (!keep_slot) evictions_.push_back(eviction);
  if (!sequence.swapped) sequence.computed = 0;
  if (!keep_slot) sequence.state = State::waiting;
  sequence.evicted_now = true;
  observer.on_preempt(eviction, emitted, at(now_));
}

void FakeRun::decide(Observer& observer) {
  admissions_.clear();
  evictions_.clear();
  changes_.clear();
  for (auto& [handle, sequence] : alive_) {
    sequence.evicted_now = false;
    if (sequence.state != State::waiting && draw_.chance(options_.preempt))
      preempt(observer, handle, sequence.emitted, false);
  }
  for (auto& [handle, sequence] : alive_) {
    if (sequence.state != State::waiting || sequence.evicted_now || !draw_.chance(0.5)) continue;
    sequence.state = State::catching_up;
    sequence.slot = static_cast<Slot>(static_cast<std::uint32_t>(handle));
    if (!sequence.swapped && sequence.known() > 4 && draw_.chance(0.3))
      sequence.computed = static_cast<std::int32_t>(draw_.between(0, sequence.known() - 1));
    admissions_.push_back({sequence.slot, handle, &sequence.offer.request, sequence.known(),
                           sequence.computed, sequence.swapped});
    sequence.swapped = false;
    observer.on_admit(admissions_.back(), at(now_));
  }
}

void FakeRun::emit_records(Observer& observer, StepPlan& plan, std::int64_t repeats, std::int32_t rows) {
  StepRecord record;
  record.plan = &plan;
  record.begin = at(now_);
  record.first = Duration(draw_.between(50, 400));
  // Falling durations, too: a window may shrink as long as it stays positive.
  record.growth = Duration(repeats > 1 ? draw_.between(-4, 20) : 0);
  record.repeats = repeats;
  record.decode_emissions = rows;
  record.resident = static_cast<std::int32_t>(alive_.size() - in_state(State::waiting).size());
  record.waiting = static_cast<std::int32_t>(in_state(State::waiting).size());
  record.kv = {100, 40, 30, 300, 0, 60};
  now_ = picoseconds(record.end());
  if (options_.merge) return observer.on_step(record);
  for (std::int64_t j = 0; j < repeats; ++j) {
    StepRecord one = record;
    one.begin =
        at(picoseconds(record.begin) + record.first.count() * j + record.growth.count() * (j * (j - 1) / 2));
    one.first = record.first + record.growth * j;
    one.growth = Duration(0);
    one.repeats = 1;
    one.repeat_first = j;
    observer.on_step(one);
  }
}

std::vector<Chunk> FakeRun::draw_chunks(std::vector<Handle>& rows) {
  std::vector<Chunk> chunks;
  if (rows.size() > 1 && draw_.chance(options_.starve)) {
    const Handle handle =
        rows[static_cast<std::size_t>(draw_.between(0, static_cast<std::int64_t>(rows.size()) - 1))];
    rows.erase(std::find(rows.begin(), rows.end(), handle));
    alive_[handle].state = State::catching_up;
    changes_.push_back({alive_[handle].slot, handle, alive_[handle].computed, false});
  } else {
    for (const Handle handle : in_state(State::catching_up)) {
      Sequence& sequence = alive_[handle];
      if (!draw_.chance(0.8)) continue;
      const std::int32_t debt = sequence.known() - sequence.computed;
      const auto tokens = static_cast<std::int32_t>(draw_.chance(0.7) ? debt : draw_.between(1, debt));
      chunks.push_back({sequence.slot, handle, tokens, sequence.computed,
                        tokens == debt && sequence.offer.output_tokens > 0});
      sequence.computed += tokens;
    }
  }
  return chunks;
}

void FakeRun::step(Observer& observer) {
  StepPlan plan;
  plan.number = plans_++;
  std::vector<Handle> rows = in_state(State::lock_step);
  const std::vector<Chunk> chunks = draw_chunks(rows);
  for (const Chunk& chunk : chunks) plan.new_tokens += chunk.tokens;
  const bool decodes = !rows.empty() && (chunks.empty() || draw_.chance(0.7));
  if (!decodes) rows.clear();
  if (chunks.empty() && rows.empty()) {
    now_ += draw_.between(1, 500);
    return;
  }
  std::int64_t repeats = chunks.empty() ? draw_.between(1, 6) : 1;
  for (const Handle handle : rows) repeats = std::min<std::int64_t>(repeats, alive_[handle].left());
  plan.chunks = chunks;
  plan.decode_count = static_cast<std::int32_t>(rows.size());
  for (const Handle handle : rows) plan.decode_context_sum += alive_[handle].computed;
  plan.new_tokens += plan.decode_count;
  plan.left_out[0] = static_cast<std::int32_t>(draw_.between(0, 2));
  plan.admissions = admissions_;
  plan.evictions = evictions_;
  plan.lock_step_changes = changes_;
  std::vector<Handle> leaving;
  if (repeats == 1)
    for (const Handle handle : rows)
      if (alive_[handle].left() > 1 && draw_.chance(options_.preempt_in_flight)) {
        preempt(observer, handle, alive_[handle].emitted + 1, true);
        leaving.push_back(handle);
      }
  emit_records(observer, plan, repeats, plan.decode_count);
  for (const Handle handle : rows) {
    Sequence& sequence = alive_[handle];
    sequence.emitted += static_cast<std::int32_t>(repeats);
    // A row that left without its blocks has nothing computed.
    if (std::find(leaving.begin(), leaving.end(), handle) == leaving.end() || sequence.swapped)
      sequence.computed += static_cast<std::int32_t>(repeats);
  }
  for (const Handle handle : leaving) alive_[handle].state = State::waiting;
  std::vector<Handle> ended;
  for (const Chunk& chunk : chunks) {
    Sequence& sequence = alive_[chunk.request];
    if (chunk.sampled) {
      sequence.state = State::lock_step;
      observer.on_token(chunk.request, ++sequence.emitted, at(now_));
    }
    if (sequence.left() == 0 && sequence.computed >= sequence.offer.request.prompt_tokens)
      ended.push_back(chunk.request);
  }
  for (const Handle handle : rows)
    if (alive_[handle].left() == 0) ended.push_back(handle);
  for (const Handle handle : ended) finish(observer, handle, Ending::finished);
  if (options_.batch_ends && draw_.chance(0.3)) observer.on_batch_end(at(now_));
}

Time FakeRun::run(Observer& observer) {
  for (std::int64_t turn = 0; turn < options_.turns; ++turn) {
    arrive(observer);
    std::vector<Handle> cancelled;
    for (const auto& [handle, sequence] : alive_)
      if (draw_.chance(options_.cancel)) cancelled.push_back(handle);
    for (const Handle handle : cancelled) finish(observer, handle, Ending::cancelled);
    decide(observer);
    step(observer);
  }
  return at(now_);
}

}  // namespace foretoken::test

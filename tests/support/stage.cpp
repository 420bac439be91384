#include "tests/support/stage.hpp"

#include <algorithm>
#include <sstream>

namespace foretoken::laws {

ListSource::ListSource(const std::vector<Item>& items) : items_(&items), followers_(items.size()) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].after < 0)
      next_.push({items[i].offer.request.arrival, i});
    else
      followers_[static_cast<std::size_t>(items[i].after)].push_back(i);
  }
}

Time ListSource::next_time() { return next_.empty() ? kNever : next_.top().at; }

Offer ListSource::pop() {
  const Next next = next_.top();
  next_.pop();
  const Item& item = (*items_)[next.item];
  Offer offer = item.offer;
  offer.request.id = RequestId{static_cast<std::uint32_t>(popped_.size())};
  offer.request.arrival = next.at;
  offer.request.prefix_hashes = item.hashes;
  popped_.push_back(next.item);
  return offer;
}

void ListSource::on_end(RequestId id, Time t, Ending) {
  for (const std::size_t i : followers_[position(id)]) next_.push({t + (*items_)[i].think, i});
}

Duration price_of(const Prices& p, const StepPlan& plan, bool copies_are_serial) {
  std::int64_t sum = p.step + p.decode_row * plan.decode_count + p.context_token * plan.decode_context_sum +
                     p.padding_token * plan.padding_tokens + p.dead_row * plan.dead_rows;
  for (const Chunk& chunk : plan.chunks)
    sum += chunk.tokens * (p.chunk_token + p.chunk_context * chunk.context);
  if (copies_are_serial)
    for (const Copy& copy : plan.copies) sum += p.copy + p.copied_block * copy.blocks;
  return Duration{sum};
}

Window PricedExecutor::launch(const StepPlan& plan, Time begin) {
  LAW(--steps_left_ > 0, "more steps than any drawn run takes");
  Window window;
  window.begin = begin;
  window.first = price_of(prices_, plan, !overlap_);
  window.growth = Duration{prices_.context_token * plan.decode_count};
  window.repeats_max = prices_.window_max;
  return window;
}

Time PricedExecutor::complete(const StepPlan&, const Window& window) { return window.end_after(1); }

Time PricedExecutor::transfer_end(const Copy& copy, Time begin) {
  if (!overlap_) return begin;
  link_free_ = std::max(begin, link_free_) + Duration{prices_.copy + prices_.copied_block * copy.blocks};
  return link_free_;
}

void EventLog::add(char kind, std::int64_t begin, std::int64_t t,
                   std::initializer_list<std::int64_t> values) {
  Entry entry{kind, begin, t};
  std::copy(values.begin(), values.end(), entry.begin() + 3);
  entries_.push_back(entry);
}

void EventLog::on_arrival(Handle handle, const Offer& offer, Time) {
  if (index(handle) >= ids_.size()) ids_.resize(index(handle) + 1);
  const auto id = static_cast<std::size_t>(offer.request.id);
  ids_[index(handle)] = names_.empty() ? static_cast<std::int64_t>(id) : names_[id];
}
void EventLog::on_admit(const Admission& a, Time t) {
  add('a', picoseconds(t), picoseconds(t), {id(a.request), a.known_tokens, a.cached_tokens, a.swapped_in});
}
void EventLog::on_preempt(const Eviction& e, std::int32_t emitted, Time t) {
  add('p', picoseconds(t), picoseconds(t), {id(e.request), emitted, e.context_tokens, e.swapped});
}
void EventLog::on_token(Handle handle, std::int32_t emitted, Time t) {
  add('t', picoseconds(t), picoseconds(t), {id(handle), emitted});
}
void EventLog::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  add('e', picoseconds(t), picoseconds(t), {id(handle), static_cast<std::int64_t>(how), emitted});
}
void EventLog::on_batch_end(Time t) { add('b', picoseconds(t), picoseconds(t), {}); }

void EventLog::on_step(const StepRecord& record) {
  const StepPlan& plan = *record.plan;
  std::uint64_t rows = mix(static_cast<std::uint64_t>(plan.new_tokens));
  const auto fold = [&](std::int64_t value) { rows = mix(rows ^ static_cast<std::uint64_t>(value)); };
  for (const Chunk& chunk : plan.chunks) {
    fold(id(chunk.request));
    fold(chunk.tokens);
    fold(chunk.context);
    fold(chunk.sampled);
  }
  for (const std::int64_t value : {std::int64_t{plan.sampled_rows}, std::int64_t{plan.dead_rows},
                                   plan.dead_context_sum, plan.padding_tokens})
    fold(value);
  for (const std::int32_t count : plan.left_out) fold(count);
  Time begin = record.begin;
  for (std::int64_t j = 0; j < record.repeats; ++j) {
    const Duration duration = record.first + record.growth * j;
    const std::int64_t grown = record.repeat_first + j;
    durations_.push_back(duration);
    add('s', picoseconds(begin), picoseconds(begin + duration),
        {plan.decode_count, plan.decode_context_sum + grown * plan.decode_count,
         plan.decode_count > 0 ? plan.decode_context_min + grown : 0,
         plan.decode_count > 0 ? plan.decode_context_max + grown : 0, record.decode_emissions,
         static_cast<std::int64_t>(rows)});
    begin += duration;
  }
}

void Both::on_arrival(Handle handle, const Offer& offer, Time t) {
  first_.on_arrival(handle, offer, t);
  second_.on_arrival(handle, offer, t);
}
void Both::on_reject(const Offer& offer, Refusal why, Time t) {
  first_.on_reject(offer, why, t);
  second_.on_reject(offer, why, t);
}
void Both::on_admit(const Admission& admission, Time t) {
  first_.on_admit(admission, t);
  second_.on_admit(admission, t);
}
void Both::on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) {
  first_.on_preempt(eviction, emitted, t);
  second_.on_preempt(eviction, emitted, t);
}
void Both::on_step(const StepRecord& record) {
  first_.on_step(record);
  second_.on_step(record);
}
void Both::on_token(Handle handle, std::int32_t emitted, Time t) {
  first_.on_token(handle, emitted, t);
  second_.on_token(handle, emitted, t);
}
void Both::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  first_.on_end(handle, how, emitted, t);
  second_.on_end(handle, how, emitted, t);
}
void Both::on_stepless(const StepPlan& plan, Time t) {
  first_.on_stepless(plan, t);
  second_.on_stepless(plan, t);
}
void Both::on_batch_end(Time t) {
  first_.on_batch_end(t);
  second_.on_batch_end(t);
}

std::vector<EventLog::Entry> EventLog::moved(std::int64_t factor, Duration shift) const {
  std::vector<Entry> result = entries_;
  for (Entry& entry : result)
    for (const int i : {1, 2}) {
      auto& time = entry[static_cast<std::size_t>(i)];
      time = time * factor + shift.count();
    }
  return result;
}

void require_equal(const std::vector<EventLog::Entry>& a, const std::vector<EventLog::Entry>& b,
                   const char* what) {
  const auto print = [](const std::vector<EventLog::Entry>& entries, std::size_t i) {
    std::ostringstream text;
    for (std::size_t k = i >= 4 ? i - 4 : 0; k <= i; ++k) {
      if (k >= entries.size()) break;
      text << "\n    " << static_cast<char>(entries[k][0]);
      for (std::size_t f = 1; f < entries[k].size(); ++f) text << ' ' << entries[k][f];
    }
    return text.str();
  };
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    LAW(i < a.size() && i < b.size() && a[i] == b[i], what, "differ at", i, print(a, i), "\n  against",
        print(b, i));
}

Stage::Stage(const Setup& given)
    : setup(given),
      scheduler(setup.policy, setup.capacity, setup.scheduler),
      source(setup.items),
      executor(setup) {}

RunResult Stage::run(Executor& used, Observer& observer) {
  Engine engine(scheduler, used, observer, setup.engine);
  Engine* const engines[] = {&engine};
  VirtualClock clock;
  return foretoken::run(source, engines, clock);
}

EventLog log_of(const Setup& setup) {
  Stage stage(setup);
  EventLog log;
  LAW(stage.run(stage.executor, log).drained);
  return log;
}

Window ReplayExecutor::launch(const StepPlan&, Time begin) {
  LAW(next_ < durations_.size(), "more steps than were recorded");
  Window window;
  window.begin = begin;
  window.end_known = !joins_;
  if (!joins_) window.first = durations_[next_++];
  return window;
}

Time ReplayExecutor::complete(const StepPlan&, const Window& window) {
  return window.begin + durations_[next_++];
}

}  // namespace foretoken::laws

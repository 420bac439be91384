#include <memory>

#include "tests/property/fault_rows.hpp"

namespace foretoken::laws {
namespace {

using Kind = Event::Kind;

/// A fault in the events of a kind; the change says how often the event is told.
Fault in_events(Kind kind, const std::function<int(Event&)>& change) {
  Fault fault;
  fault.event = [kind, change](Event& event) { return event.kind == kind ? change(event) : 1; };
  return fault;
}

/// Never tells of one request again, from its end on.
Fault losing_an_end() {
  Fault fault;
  fault.event = [](Event& event) {
    const bool last = event.handle == Handle{3};
    return last && (event.kind == Kind::end || event.kind == Kind::release) ? 0 : 1;
  };
  return fault;
}

/// Says that arrivals come a moment later than they do.
class LateSource final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  Time next_time() override {
    const Time t = inner_.next_time();
    return t == kNever ? t : t + Duration{1};
  }
  Offer pop() override {
    Offer offer = inner_.pop();
    offer.request.arrival += Duration{1};
    return offer;
  }
};

/// Loses the first request.
class LosingSource final : public SourceAround {
 public:
  explicit LosingSource(Source& inner) : SourceAround(inner) { inner_.pop(); }
};

template <class Around>
Fault with_source() {
  Fault fault;
  fault.source = [](Source& inner) { return std::make_unique<Around>(inner); };
  return fault;
}

Setup with_one_too_long() {
  Setup setup = roomy();
  setup.items[2].offer.request.prompt_tokens = 65;
  return setup;
}

Setup together(Setup setup) {
  for (Item& item : setup.items) item.offer.request.arrival = Time{};
  setup.items.resize(4);
  return setup;
}

Fault leaking(bool booked, bool at_the_end) {
  Fault fault;
  fault.meddle = [booked, at_the_end](Scheduler& scheduler, RunResult* result) {
    if ((result != nullptr) == at_the_end) leak_block(scheduler, booked);
  };
  return fault;
}

/// Tells of the first two admissions in the other order.
Fault swapping_admissions() {
  const auto first = std::make_shared<std::vector<Event>>();
  Fault fault;
  fault.invented = [first](const Event& e) {
    std::vector<Event> told;
    if (e.kind != Kind::admit) return told;
    if (first->size() == 1) told = {e, first->front()};
    first->push_back(e);
    return told;
  };
  fault.event = [first](Event& e) { return e.kind == Kind::admit && first->size() <= 2 ? 0 : 1; };
  return fault;
}

void time_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("1 I1", "an admission is told a moment before the arrival", "t >= now_", roomy(),
                           in_events(Kind::admit, [](Event& e) {
                             e.at -= Duration{1};
                             return 1;
                           })));
  rows.push_back(audit_row("1 I1", "a token is told after its step", "t == end_of_last_", roomy(),
                           in_events(Kind::token, [](Event& e) {
                             e.at += Duration{1};
                             return 1;
                           })));
  rows.push_back(audit_row("1 7 I1", "two admissions change places", "overtaken", together(roomy()),
                           swapping_admissions()));
  rows.push_back(audit_row("1", "a step begins before the one before it has ended",
                           "record.end() == window.end_after", roomy(), in_events(Kind::step, [](Event& e) {
                             e.record.begin -= Duration{1};
                             return 1;
                           })));
  rows.push_back(audit_row("1", "the executor tells the engine and the books different durations",
                           "record.end() == window.end_after", roomy(), [] {
                             Fault fault;
                             fault.window = [](Window& window) { window.first += Duration{1}; };
                             return fault;
                           }()));
  rows.push_back(audit_row(
      "1 8", "an arrival is handled a moment too late", "an arrival that ties with the boundary is not seen",
      [] {
        Setup setup = roomy();
        setup.items[3].offer.request.arrival = Time{Duration{1101}};
        return setup;
      }(),
      with_source<LateSource>()));
  rows.push_back(
      audit_row("1 I1", "a request ends and nobody is told", "lost", together(roomy()), losing_an_end()));
}

void count_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("2", "a request that came is never submitted",
                           "rejected_ + ended_ == static_cast<std::int64_t>(setup_.items.size())", roomy(),
                           with_source<LosingSource>()));
  rows.push_back(audit_row("2 I1", "a refusal is not told",
                           "rejected_ + ended_ == static_cast<std::int64_t>(setup_.items.size())",
                           with_one_too_long(), in_events(Kind::reject, [](Event&) { return 0; })));
  rows.push_back(audit_row("2 I1", "a request is in two places", "resident == record.resident && waiting",
                           roomy(), in_events(Kind::step, [](Event& e) {
                             ++e.record.waiting;
                             return 1;
                           })));
}

void block_rows(std::vector<FaultRow>& rows) {
  Setup ahead = roomy();
  ahead.policy.depth = 1;
  rows.push_back(audit_row("3 I2", "a block is taken twice", "scheduler_.audit() does not hold", ahead,
                           leaking(false, false)));
  rows.push_back(audit_row("3 I2", "a block is leaked and the totals agree", "blocks leaked or taken twice",
                           roomy(), leaking(true, false)));
  rows.push_back(audit_row("3 I2", "a block is held when all is over",
                           "use.blocks_held == 0 && use.host_blocks_held == 0", roomy(),
                           leaking(true, true)));
  rows.push_back(audit_row("3", "a report counts a block too many", "blocks leaked or taken twice", roomy(),
                           in_events(Kind::step, [](Event& e) {
                             ++e.record.kv.blocks_held;
                             return 1;
                           })));
  rows.push_back(audit_row("3", "sequences hold fewer blocks than their contexts fill",
                           "blocks leaked or taken twice", roomy(), [] {
                             Fault fault;
                             fault.believed = [](Setup& setup) { setup.policy.block_tokens = 8; };
                             return fault;
                           }()));
  Setup cached = roomy();
  cached.policy.prefix_cache = true;
  rows.push_back(audit_row("3 I2", "a block has more references than table entries",
                           "scheduler_.audit() does not hold", cached, [] {
                             Fault fault;
                             fault.meddle = [](Scheduler& scheduler, RunResult* result) {
                               if (result == nullptr) overcount_references(scheduler);
                             };
                             return fault;
                           }()));
}

void host_rows(std::vector<FaultRow>& rows) {
  Setup swapping = scarce();
  swapping.policy.preempt = PreemptMode::swap;
  swapping.capacity.host_blocks = 6;
  rows.push_back(audit_row("I2", "a block of the host is held when all is over",
                           "use.blocks_held == 0 && use.host_blocks_held == 0", swapping, [] {
                             Fault fault;
                             fault.meddle = [](Scheduler& scheduler, RunResult* result) {
                               if (result != nullptr) leak_host_block(scheduler);
                             };
                             return fault;
                           }()));
  rows.push_back(audit_row("I2", "more is swapped out than the host holds",
                           "host <= setup_.capacity.host_blocks", swapping, [] {
                             Fault fault;
                             fault.believed = [](Setup& setup) { setup.capacity.host_blocks = 60; };
                             return fault;
                           }()));
}

void life_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("5", "an arrival is told with another time", "t == offer.request.arrival", roomy(),
                           in_events(Kind::arrival, [](Event& e) {
                             e.offer.request.arrival -= Duration{1};
                             return 1;
                           })));
  Setup single = roomy();
  for (Item& item : single.items) item.offer.output_tokens = 1;
  rows.push_back(audit_row("5 I1", "a token is lost", "emitted == l.emitted", single,
                           in_events(Kind::token, [](Event& e) { return e.handle == Handle{1} ? 0 : 1; })));
  rows.push_back(audit_row("5 I1", "a first token is lost", "a decode that owes more than one token", roomy(),
                           in_events(Kind::token, [](Event& e) { return e.handle == Handle{1} ? 0 : 1; })));
  rows.push_back(audit_row("5 I1", "a token is counted twice", "l.place == Where::resident && l.token_due",
                           roomy(), in_events(Kind::token, [](Event&) { return 2; })));
  const Fault shorter = in_events(Kind::arrival, [](Event& e) {
    --e.offer.output_tokens;
    return 1;
  });
  rows.push_back(
      audit_row("5 I1", "a window goes on after an end", "a token too many", together(roomy()), shorter));
  rows.push_back(
      audit_row("5 I1", "a step goes on after an end", "a finished sequence runs on", roomy(), shorter));
  rows.push_back(audit_row("5 I1", "an answer ends before its end",
                           "emitted == l.output && t == end_of_last_", roomy(),
                           in_events(Kind::arrival, [](Event& e) {
                             ++e.offer.output_tokens;
                             return 1;
                           })));
  rows.push_back(audit_row("5 I1", "an end is told twice", "l.place != Where::gone && emitted == l.emitted",
                           roomy(), in_events(Kind::end, [](Event&) { return 2; })));
  rows.push_back(audit_row("5 I1", "a preempted request loses a token", "preemption never takes a token back",
                           scarce(), in_events(Kind::preempt, [](Event& e) {
                             --e.emitted;
                             return 1;
                           })));
  rows.push_back(audit_row("I1", "a request is admitted twice", "l.place == (a.swapped_in", roomy(),
                           in_events(Kind::admit, [](Event&) { return 2; })));
}

}  // namespace

std::vector<FaultRow> safety_rows() {
  std::vector<FaultRow> rows;
  time_rows(rows);
  count_rows(rows);
  block_rows(rows);
  host_rows(rows);
  life_rows(rows);
  return rows;
}

}  // namespace foretoken::laws

#include "tests/property/fault_rows.hpp"

namespace foretoken::laws {
namespace {

Fault going_by(const std::function<void(Setup&)>& change) {
  Fault fault;
  fault.believed = change;
  return fault;
}

Setup one_long_prompt() {
  Setup setup = roomy();
  setup.policy.sequences_max = 1;
  setup.policy.batch_tokens_max = 0;
  setup.items.resize(1);
  setup.items[0].offer.request.prompt_tokens = 50;
  return setup;
}

/// Somebody large who does not fit beside the one that runs, and small ones behind.
Setup blocked_head() {
  Setup setup = roomy();
  setup.policy.sequences_max = 8;
  setup.policy.batch_tokens_max = 200;
  setup.policy.head_of_line = HeadOfLine::bounded_skip;
  setup.policy.overtakes_max = 2;
  setup.capacity = {16, 0, 64, false};
  for (Item& item : setup.items) {
    item.offer.request.arrival = Time{};
    item.offer.request.prompt_tokens = 4;
    item.offer.output_tokens = 2;
  }
  setup.items[0].offer.request.prompt_tokens = 28;
  setup.items[0].offer.output_tokens = 12;
  setup.items[1].offer.request.prompt_tokens = 40;
  return setup;
}

/// Evicts a request again and again, each time when it has just been admitted.
Fault evicting_for_ever() {
  Fault fault;
  fault.invented = [](const Event& e) {
    std::vector<Event> events;
    if (e.kind != Event::Kind::step) return events;
    for (int i = 0; i < 1000; ++i) {
      Event out, in;
      out.kind = Event::Kind::preempt;
      out.eviction = {Slot{0}, Handle{0}, 0, false};
      out.at = in.at = e.record.begin;
      in.kind = Event::Kind::admit;
      static const Request facts{};
      in.admission = {Slot{0}, Handle{0}, &facts, 50, 0, false, RequestId{}};
      events.push_back(out);
      events.push_back(in);
    }
    return events;
  };
  return fault;
}

void progress_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("6 I9", "a prompt is computed in crumbs", "nobody got a token for so many steps",
                           one_long_prompt(),
                           going_by([](Setup& setup) { setup.policy.chunk_tokens_max = 1; })));
  rows.push_back(audit_row("6 I9 I12", "a request is evicted whenever it is admitted",
                           "preempted again and again", one_long_prompt(), evicting_for_ever()));
  rows.push_back(audit_row("6 I9", "a run stops while work is left", "work is left over", roomy(), [] {
    Fault fault;
    fault.meddle = [](Scheduler&, RunResult* result) {
      if (result != nullptr) result->drained = false;
    };
    return fault;
  }()));
}

void conserving_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("I8", "a slot stays empty while somebody waits",
                           "the head of the queue fits and is left out", roomy(),
                           going_by([](Setup& setup) { setup.policy.sequences_max = 1; })));
  rows.push_back(
      audit_row("I8", "a request waits without a reason", "left out without a reason", roomy(), [] {
        Fault fault;
        fault.plan = [](EditedPlan& e) { ++e.plan.left_out[0]; };
        return fault;
      }()));
  rows.push_back(audit_row("I8", "a device idles while somebody waits", "idle while somebody waits", roomy(),
                           going_by([](Setup& setup) {
                             setup.policy.join = Join::count_or_timeout;
                             setup.policy.join_count = 2;
                             setup.policy.join_timeout = Duration{5000};
                           })));
  Setup batches = roomy();
  batches.policy.join = Join::count_or_timeout;
  batches.policy.join_count = 3;
  batches.policy.join_timeout = Duration{5000};
  rows.push_back(audit_row("I8", "a batch starts before it is full or overdue", "neither N nor the timeout",
                           batches, going_by([](Setup& setup) { setup.policy.join_count = 1; })));
  Setup decoding = roomy();
  decoding.policy.form = Form::decodes_first;
  decoding.policy.batch_tokens_max = 6;
  rows.push_back(audit_row("I8", "a decode waits for a prompt", "a decode waits", decoding,
                           going_by([](Setup& setup) { setup.policy.form = Form::prefill_exclusive; })));
}

void order_rows(std::vector<FaultRow>& rows) {
  Setup falling = roomy();
  for (std::size_t i = 0; i < falling.items.size(); ++i) {
    falling.items[i].offer.request.arrival = Time{};
    falling.items[i].offer.request.prompt_tokens = 20 - static_cast<std::int32_t>(i);
  }
  rows.push_back(audit_row("7 I11", "the oldest is passed over", "overtaken", falling,
                           going_by([](Setup& s) { s.policy.order = Order::shortest_prompt; })));
  rows.push_back(audit_row("7 I11", "more overtake than may", "++l.overtaken <= policy_.overtakes_max",
                           blocked_head(), going_by([](Setup& setup) { setup.policy.overtakes_max = 4; })));
  Setup aged = blocked_head();
  aged.policy.overtake_age_max = Duration{2000};
  for (std::size_t i = 2; i < aged.items.size(); ++i)
    aged.items[i].offer.request.arrival = Time{Duration{3000}};
  rows.push_back(audit_row("I11", "somebody overtakes a request of an age that nobody may overtake",
                           "now_ - l.offer.request.arrival < policy_.overtake_age_max", aged,
                           going_by([](Setup& setup) { setup.policy.overtake_age_max = kForever; })));
  Setup swapping = scarce();
  swapping.policy.preempt = PreemptMode::swap;
  swapping.policy.sequences_max = 8;
  swapping.capacity.host_blocks = 60;
  for (int i = 0; i < 40; ++i) {
    Item late = swapping.items[0];
    late.offer.request.arrival = Time{Duration{2000 + i * 400}};
    late.offer.request.prompt_tokens = 1;
    late.offer.output_tokens = 1;
    swapping.items.push_back(late);
  }
  rows.push_back(audit_row("7 I11", "a newcomer is admitted before one that was swapped out",
                           "admitted before the swapped", swapping,
                           going_by([](Setup& setup) { setup.policy.swapped_first = false; })));
}

void door_rows(std::vector<FaultRow>& rows) {
  Setup small = roomy();
  small.capacity = {8, 0, 64, false};
  for (Item& item : small.items) item.offer.request.max_new_tokens = 8;
  rows.push_back(audit_row("I10", "the door counts with another pool than admission does",
                           "tokens_max_ == scheduler.sequence_tokens_max()", small,
                           going_by([](Setup& setup) { setup.capacity.kv_blocks = 16; })));
  rows.push_back(
      audit_row("I10", "somebody who never fits comes through the door", "longest <= tokens_max_", small, [] {
        Fault fault;
        fault.event = [](Event& e) {
          if (e.kind == Event::Kind::arrival) e.offer.request.prompt_tokens = 30;
          return 1;
        };
        return fault;
      }()));
  Setup refusing = small;
  refusing.items[1].offer.request.prompt_tokens = 40;
  rows.push_back(audit_row("I10", "somebody who would fit is refused", "longest > tokens_max_", refusing, [] {
    Fault fault;
    fault.event = [](Event& e) {
      if (e.kind == Event::Kind::reject) e.offer.request.prompt_tokens = 10;
      return 1;
    };
    return fault;
  }()));
  Setup careful = roomy();
  careful.capacity = {20, 0, 24, false};
  careful.policy.watermark = 0.3;
  careful.policy.batch_tokens_max = 100;
  for (Item& item : careful.items) {
    item.offer.request.arrival = Time{};
    item.offer.request.prompt_tokens = 16;
  }
  rows.push_back(audit_row("I4", "an admission takes what the watermark keeps free", "below the watermark",
                           careful, going_by([](Setup& setup) { setup.policy.watermark = 0; })));
}

}  // namespace

std::vector<FaultRow> liveness_rows() {
  std::vector<FaultRow> rows;
  progress_rows(rows);
  conserving_rows(rows);
  order_rows(rows);
  door_rows(rows);
  return rows;
}

}  // namespace foretoken::laws

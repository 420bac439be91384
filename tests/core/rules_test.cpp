#include "sim/core/rules.hpp"

#include <limits>

#include "tests/catch.hpp"

using namespace foretoken;

namespace {

std::int64_t key_of(Order order, const Request& request) {
  Policy policy;
  policy.order = order;
  return make_order_rule(policy)->key(request);
}

/// The one verdict that the configured rules come to: the first no, or yes.
Verdict verdict_of(const Policy& policy, const AdmitState& state) {
  for (const auto& rule : make_admit_rules(policy))
    if (const Verdict verdict = rule->ask(state); !verdict.yes) return verdict;
  return {};
}

/// A policy whose rules say yes to everything but more sequences than ten.
Policy lenient() {
  Policy policy;
  policy.sequences_max = 10;
  policy.freeze_after_preemption = false;
  policy.swapped_first = false;
  return policy;
}

Time at(std::int64_t t) { return Time{Duration{t}}; }

}  // namespace

TEST_CASE("orders: what comes first among the waiting") {
  Request request;
  request.prompt_tokens = 70;
  request.priority = -3;
  request.predicted_output_tokens = 9;
  Policy policy;
  CHECK(make_order_rule(policy) == nullptr);
  CHECK(key_of(Order::priority, request) == -3);
  CHECK(key_of(Order::shortest_prompt, request) == 70);
  CHECK(key_of(Order::shortest_predicted, request) == 9);
  // Nothing says that an answer without a prediction is short.
  request.predicted_output_tokens = 0;
  CHECK(key_of(Order::shortest_predicted, request) == std::numeric_limits<std::int32_t>::max());
}

TEST_CASE("admission: the cap on sequences") {
  AdmitState state;
  state.resident = 9;
  CHECK(verdict_of(lenient(), state).yes);
  state.resident = 10;
  CHECK_FALSE(verdict_of(lenient(), state).yes);
  CHECK(verdict_of(lenient(), state).reason == LeftOut::sequence_cap);
  CHECK(verdict_of(lenient(), state).ask_again == kNever);
}

TEST_CASE("admission: nobody after a preemption, where the engine says so") {
  Policy policy = lenient();
  AdmitState state;
  state.preempted = true;
  CHECK(verdict_of(policy, state).yes);
  policy.freeze_after_preemption = true;
  CHECK(verdict_of(policy, state).reason == LeftOut::preemption_freeze);
  state.preempted = false;
  CHECK(verdict_of(policy, state).yes);
}

TEST_CASE("admission: nobody before the swapped, where the engine says so") {
  Policy policy = lenient();
  AdmitState state;
  state.swapped = 1;
  CHECK(verdict_of(policy, state).yes);
  policy.swapped_first = true;
  CHECK(verdict_of(policy, state).reason == LeftOut::swapped_first);
}

TEST_CASE("admission: only into an empty engine, but then several in one step") {
  Policy policy = lenient();
  policy.join = Join::when_empty;
  AdmitState state;
  state.resident_at_start = 1;
  state.resident = 1;
  CHECK(verdict_of(policy, state).reason == LeftOut::join_rule);
  state.resident_at_start = 0;
  CHECK(verdict_of(policy, state).yes);
}

TEST_CASE("admission: N or a timeout, counted from the oldest") {
  Policy policy = lenient();
  policy.join = Join::count_or_timeout;
  policy.join_count = 3;
  policy.join_timeout = Duration{100};
  AdmitState state;
  state.waiting = 2;
  state.oldest_arrival = at(50);
  state.now = at(149);
  const Verdict early = verdict_of(policy, state);
  CHECK((!early.yes && early.reason == LeftOut::join_rule && early.ask_again == at(150)));
  state.now = at(150);
  CHECK(verdict_of(policy, state).yes);
  state.now = at(60);
  state.waiting = 3;
  CHECK(verdict_of(policy, state).yes);
  // The first of the batch is in, so fewer than N wait.
  state.waiting = 2;
  state.resident = 1;
  CHECK(verdict_of(policy, state).yes);
  // A batch is running: neither number nor age helps, and asking again by the clock is in vain.
  state.resident_at_start = 1;
  state.waiting = 9;
  state.now = at(1000);
  const Verdict busy = verdict_of(policy, state);
  CHECK((!busy.yes && busy.reason == LeftOut::join_rule && busy.ask_again == kNever));
  // A timeout without end never comes.
  policy.join_timeout = kForever;
  state = {};
  state.waiting = 1;
  CHECK((!verdict_of(policy, state).yes && verdict_of(policy, state).ask_again == kNever));
}

TEST_CASE("victims: the last admitted, or the least urgent of them the latest") {
  Policy policy;
  const VictimCandidate old_urgent{Slot{0}, 0, at(5), 1};
  const VictimCandidate young_urgent{Slot{1}, 0, at(7), 2};
  const VictimCandidate old_low{Slot{2}, 9, at(1), 3};
  const auto last = make_victim_rule(policy);
  CHECK(last->yields_before(old_low, young_urgent));
  CHECK(last->yields_before(young_urgent, old_urgent));
  CHECK_FALSE(last->yields_before(old_urgent, young_urgent));
  CHECK_FALSE(last->yields_before(old_urgent, old_urgent));
  policy.victim = Victim::lowest_priority;
  const auto lowest = make_victim_rule(policy);
  // max(priority, arrival): the greater number, then the later arrival, then the later admission.
  CHECK(lowest->yields_before(old_low, young_urgent));
  CHECK(lowest->yields_before(young_urgent, old_urgent));
  CHECK_FALSE(lowest->yields_before(old_urgent, young_urgent));
  VictimCandidate again = old_urgent;
  again.admitted = 7;
  CHECK(lowest->yields_before(again, old_urgent));
  CHECK_FALSE(lowest->yields_before(old_urgent, again));
}

TEST_CASE("programs: the phases of a step and who runs alone") {
  const auto phases = [](Form form) {
    Policy policy;
    policy.form = form;
    std::vector<Phase> result;
    for (const PhaseRule& rule : make_program(policy)) result.push_back(rule.phase);
    return result;
  };
  using Phases = std::vector<Phase>;
  CHECK(phases(Form::list_order) == Phases{Phase::residents, Phase::swap_in, Phase::admit});
  CHECK(phases(Form::decodes_first) == Phases{Phase::decodes, Phase::prompts, Phase::swap_in, Phase::admit});
  CHECK(phases(Form::prefill_exclusive) ==
        Phases{Phase::prompts, Phase::admit, Phase::decodes, Phase::swap_in});
  // Only admitted prompts end the step.
  Policy policy;
  policy.form = Form::prefill_exclusive;
  for (const PhaseRule& rule : make_program(policy)) CHECK(rule.exclusive == (rule.phase == Phase::admit));
}

TEST_CASE("reservations: tokens for which memory must be free") {
  // 50 known, of which the step brings 20 into the cache; at most 80; the engine serves up to 200.
  CHECK(reserved_tokens(Reserve::chunk, 50, 20, 80, 200) == 20);
  CHECK(reserved_tokens(Reserve::known, 50, 20, 80, 200) == 50);
  CHECK(reserved_tokens(Reserve::prompt_and_max, 50, 20, 80, 200) == 80);
  CHECK(reserved_tokens(Reserve::max_len, 50, 20, 80, 200) == 200);
  // Never less than what is known already.
  CHECK(reserved_tokens(Reserve::prompt_and_max, 90, 20, 80, 200) == 90);
}

TEST_CASE("blocks are counted up") {
  STATIC_REQUIRE(blocks_for(0, 16) == 0);
  STATIC_REQUIRE(blocks_for(1, 16) == 1);
  STATIC_REQUIRE(blocks_for(16, 16) == 1);
  STATIC_REQUIRE(blocks_for(17, 16) == 2);
  STATIC_REQUIRE(blocks_for(std::int64_t{1} << 40, 1) == std::int64_t{1} << 40);
}

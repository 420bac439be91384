#include "sim/core/rules.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

struct PriorityOrder final : OrderRule {
  std::int64_t key(const Request& r) const override { return r.priority; }
};
struct ShortestPromptOrder final : OrderRule {
  std::int64_t key(const Request& r) const override { return r.prompt_tokens; }
};
struct ShortestPredictedOrder final : OrderRule {
  // A request without a prediction goes last: nothing says that it is short.
  std::int64_t key(const Request& r) const override {
    return r.predicted_output_tokens > 0 ? r.predicted_output_tokens
                                         : std::numeric_limits<std::int32_t>::max();
  }
};

struct SequenceCapRule final : AdmitRule {
  explicit SequenceCapRule(std::int32_t most) : sequences_max(most) {}
  Verdict ask(const AdmitState& s) const override {
    return {s.resident < sequences_max, LeftOut::sequence_cap, kNever};
  }
  std::int32_t sequences_max;
};
struct FreezeRule final : AdmitRule {
  Verdict ask(const AdmitState& s) const override {
    return {!s.preempted, LeftOut::preemption_freeze, kNever};
  }
};
struct SwappedFirstRule final : AdmitRule {
  Verdict ask(const AdmitState& s) const override { return {s.swapped == 0, LeftOut::swapped_first, kNever}; }
};
struct WhenEmptyRule final : AdmitRule {
  Verdict ask(const AdmitState& s) const override {
    return {s.resident_at_start == 0, LeftOut::join_rule, kNever};
  }
};
struct CountOrTimeoutRule final : AdmitRule {
  CountOrTimeoutRule(std::int32_t n, Duration wait) : count(n), timeout(wait) {}
  Verdict ask(const AdmitState& s) const override {
    if (s.resident_at_start > 0) return {false, LeftOut::join_rule, kNever};
    // Once the first of a batch is in, the rest of the waiting may follow.
    const Time due = after(s.oldest_arrival, timeout);
    if (s.resident > 0 || s.waiting >= count || s.now >= due) return {};
    return {false, LeftOut::join_rule, due};
  }
  std::int32_t count;
  Duration timeout;
};

struct LastAdmittedVictim final : VictimRule {
  bool yields_before(const VictimCandidate& a, const VictimCandidate& b) const override {
    return a.admitted > b.admitted;
  }
};
struct LowestPriorityVictim final : VictimRule {
  bool yields_before(const VictimCandidate& a, const VictimCandidate& b) const override {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.arrival != b.arrival) return a.arrival > b.arrival;
    return a.admitted > b.admitted;
  }
};

}  // namespace

std::unique_ptr<OrderRule> make_order_rule(const Policy& policy) {
  switch (policy.order) {
    case Order::fcfs: return nullptr;
    case Order::priority: return std::make_unique<PriorityOrder>();
    case Order::shortest_prompt: return std::make_unique<ShortestPromptOrder>();
    case Order::shortest_predicted: return std::make_unique<ShortestPredictedOrder>();
  }
  return nullptr;
}

std::vector<std::unique_ptr<AdmitRule>> make_admit_rules(const Policy& policy) {
  std::vector<std::unique_ptr<AdmitRule>> rules;
  if (policy.freeze_after_preemption) rules.push_back(std::make_unique<FreezeRule>());
  rules.push_back(std::make_unique<SequenceCapRule>(policy.sequences_max));
  if (policy.swapped_first) rules.push_back(std::make_unique<SwappedFirstRule>());
  if (policy.join == Join::when_empty) rules.push_back(std::make_unique<WhenEmptyRule>());
  if (policy.join == Join::count_or_timeout)
    rules.push_back(std::make_unique<CountOrTimeoutRule>(policy.join_count, policy.join_timeout));
  return rules;
}

std::unique_ptr<VictimRule> make_victim_rule(const Policy& policy) {
  if (policy.victim == Victim::lowest_priority) return std::make_unique<LowestPriorityVictim>();
  return std::make_unique<LastAdmittedVictim>();
}

std::vector<PhaseRule> make_program(const Policy& policy) {
  switch (policy.form) {
    case Form::list_order: return {{Phase::residents}, {Phase::swap_in}, {Phase::admit}};
    case Form::decodes_first: return {{Phase::decodes}, {Phase::prompts}, {Phase::swap_in}, {Phase::admit}};
    case Form::prefill_exclusive:
      // Unfinished prompts before new ones: these would else take the blocks that those need, again and
      // again.
      return {{Phase::prompts}, {Phase::admit, true}, {Phase::decodes}, {Phase::swap_in}};
  }
  return {};
}

std::int64_t reserved_tokens(Reserve reserve, std::int32_t known, std::int32_t computed_after,
                             std::int32_t tokens_limit, std::int32_t tokens_max) {
  switch (reserve) {
    case Reserve::chunk: return computed_after;
    case Reserve::known: return known;
    case Reserve::prompt_and_max: return std::max(known, tokens_limit);
    case Reserve::max_len: return tokens_max;
  }
  FT_CHECK(false, static_cast<int>(reserve));
}

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/core/policy.hpp"
#include "sim/core/request.hpp"
#include "sim/core/step.hpp"

namespace foretoken {

/// ORDER: a key by which waiting requests are sorted, least first; ties go to the earlier arrival. A policy
/// nobody foresaw is one more implementation.
class OrderRule {
 public:
  virtual ~OrderRule() = default;
  /// Less is earlier.
  virtual std::int64_t key(const Request& request) const = 0;
};
/// The configured rule; null for first come, first served, which needs no key.
std::unique_ptr<OrderRule> make_order_rule(const Policy& policy);

/// What ADMIT rules may look at.
struct AdmitState {
  Time now{};
  std::int32_t resident = 0;
  /// Residents when the step began to be planned.
  std::int32_t resident_at_start = 0;
  std::int64_t waiting = 0;
  std::int64_t swapped = 0;
  /// Somebody was preempted in this step.
  bool preempted = false;
  /// Arrival of the request that has waited longest.
  Time oldest_arrival{};
  /// Blocks that an admission must leave free.
  std::int64_t watermark_blocks = 0;
};

/// May anybody join now? `yes`, or the reason why not and when the answer may change by itself.
struct Verdict {
  bool yes = true;
  LeftOut reason{};
  Time ask_again = kNever;
};

/// ADMIT: a predicate over the engine's state, asked before each admission. All must agree. Memory is tested
/// after them, for the request at hand.
class AdmitRule {
 public:
  virtual ~AdmitRule() = default;
  /// The rule's answer in this state.
  virtual Verdict ask(const AdmitState& state) const = 0;
};
/// The configured predicates, cheapest first.
std::vector<std::unique_ptr<AdmitRule>> make_admit_rules(const Policy& policy);

/// A resident sequence as PREEMPT sees it.
struct VictimCandidate {
  Slot slot{};
  std::int32_t priority = 0;
  Time arrival{};
  /// Counts admissions of the run: greater is later.
  std::uint64_t admitted = 0;
};
/// PREEMPT: whether `a` yields before `b`.
class VictimRule {
 public:
  virtual ~VictimRule() = default;
  /// True when `a` is the better victim.
  virtual bool yields_before(const VictimCandidate& a, const VictimCandidate& b) const = 0;
};
/// The configured rule.
std::unique_ptr<VictimRule> make_victim_rule(const Policy& policy);

/// FORM: one phase of a step's planning.
enum class Phase : std::uint8_t {
  residents,  ///< All residents, in the order of admission.
  decodes,    ///< Residents that lack one token.
  prompts,    ///< Residents that lack more.
  swap_in,    ///< Sequences come back from the host pool.
  admit,      ///< The waiting.
};
/// A phase, and whether the step ends after it once anything was granted.
struct PhaseRule {
  Phase phase{};
  bool exclusive = false;
};
/// The program of phases of a policy.
std::vector<PhaseRule> make_program(const Policy& policy);

/// PLACE: tokens for which memory must be free before a request is admitted that has `known` tokens, of which
/// the step would compute up to `computed_after`, and that may grow to `tokens_limit`; `tokens_max` is the
/// longest sequence of the engine.
std::int64_t reserved_tokens(Reserve reserve, std::int32_t known, std::int32_t computed_after,
                             std::int32_t tokens_limit, std::int32_t tokens_max);

/// Blocks that hold so many tokens, rounded up.
constexpr std::int64_t blocks_for(std::int64_t tokens, std::int32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace foretoken

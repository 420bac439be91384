#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/json.hpp"
#include "sim/core/policy.hpp"
#include "sim/scenario_field.hpp"

namespace foretoken {

/// A field of Policy under its own name: the section `engine.sched` of a scenario.
struct PolicyField {
  Field field;                                     ///< The key.
  Json (*get)(const Policy& policy);               ///< The value in a policy.
  void (*set)(Policy& policy, const Json& value);  ///< Stores a value that fits the field.
};

/// Every field of Policy, in the order of the slots ORDER, ADMIT, FORM, PLACE, PREEMPT.
std::span<const PolicyField> policy_fields();

/// Overrides the fields that `reader` has and leaves the others as they are; unknown keys are refused.
void read_policy(JsonReader& reader, Policy& policy);
/// All fields of a policy, as `read_policy` reads them.
Json policy_to_json(const Policy& policy);

/// What a field of the policy is called by whoever reads an error about it.
using PolicyNames = std::function<std::string(std::string_view)>;
/// Refuses combinations that could never serve what they admit: a decode that cannot get its next block when
/// nobody may be preempted, a whole prompt larger than a step, a batch rule without batches. InputErrors
/// start with `place` and call fields by `name`, or by their own names where it is empty.
void check_policy(const Policy& policy, const Capacity& capacity, const std::string& place,
                  const PolicyNames& name = {});

}  // namespace foretoken

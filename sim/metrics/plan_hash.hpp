#pragma once
#include <cstdint>

#include "sim/core/step.hpp"

namespace foretoken {

/// A hash of everything that the scheduler decided for one step, order included: chunks, the decode
/// aggregates, the rows themselves where the plan has columns, admissions, evictions, copies, lock-step
/// changes, reasons for leaving out, wasted, dead and padded work. `number` and `repeats_max` are not in it:
/// the first is the position in the sequence that is compared anyway, the second a bound that an executor
/// need not use.
std::uint64_t plan_hash(const StepPlan& plan);

}  // namespace foretoken

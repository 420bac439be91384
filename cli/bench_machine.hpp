#pragma once
#include <string>

#include "models/shape.hpp"

namespace foretoken {

/// Refuses an instruction set in FORETOKEN_ISA that does not exist or that this processor has not: a
/// UsageError that lists those it has.
void check_isa();

/// A shipped model by name, or one from a path.
ModelShape model_named(const std::string& name);

}  // namespace foretoken

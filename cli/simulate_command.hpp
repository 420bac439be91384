#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken simulate SCENARIO`: runs a scenario and prints its report.
CommandSpec simulate_command();

}  // namespace foretoken

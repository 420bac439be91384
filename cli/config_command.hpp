#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken config show | schema | list`: scenarios as they will be run.
CommandSpec config_command();

}  // namespace foretoken

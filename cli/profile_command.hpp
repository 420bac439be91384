#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken profile list | show | check`: step cost profiles.
CommandSpec profile_command();

}  // namespace foretoken

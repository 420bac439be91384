#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken help [TOPIC]`: what is not the help of one command.
CommandSpec help_command();

}  // namespace foretoken

#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken presets [list | show NAME]`: the engine presets, their parameters and defaults.
CommandSpec presets_command();

}  // namespace foretoken

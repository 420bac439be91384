#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken validate`: how far a profile's predictions and live runs are apart, and where the difference
/// arises.
CommandSpec validate_command();
/// `foretoken demo`: calibrate, simulate, run live, validate, on this very machine.
CommandSpec demo_command();

}  // namespace foretoken

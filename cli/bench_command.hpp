#pragma once
#include "cli/command.hpp"

namespace foretoken {

/// `foretoken bench machine | kernels | step | sim`: what this machine and this program can do.
CommandSpec bench_command();

/// The four of them.
CommandSpec bench_machine_spec();
CommandSpec bench_kernels_spec();
CommandSpec bench_step_spec();
CommandSpec bench_sim_spec();

}  // namespace foretoken

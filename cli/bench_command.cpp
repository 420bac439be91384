#include "cli/bench_command.hpp"

namespace foretoken {

CommandSpec bench_command() {
  return {"bench",
          "What this machine and this program can do",
          {{"foretoken bench machine --json", true},
           {"foretoken bench step --model m100", true},
           {"foretoken bench sim --requests 20000"}},
          {},
          {bench_machine_spec(), bench_kernels_spec(), bench_step_spec(), bench_sim_spec()},
          {}};
}

}  // namespace foretoken

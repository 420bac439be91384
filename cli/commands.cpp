#include "cli/bench_command.hpp"
#include "cli/command.hpp"
#include "cli/config_command.hpp"
#include "cli/help_command.hpp"
#include "cli/live_command.hpp"
#include "cli/presets_command.hpp"
#include "cli/profile_command.hpp"
#include "cli/simulate_command.hpp"
#include "cli/trace_spec.hpp"
#include "cli/validate_command.hpp"

namespace foretoken {

CommandSpec all_commands() {
  return {
      "foretoken",
      "Foretells how an LLM serving system will behave, and proves it on real kernels.",
      {{"foretoken demo", true},
       {"foretoken simulate chat-8b-h100"},
       {"foretoken presets show vllm-v1"},
       {"foretoken help topics"}},
      {},
      {demo_command(), simulate_command(), live_command(), calibrate_command(), validate_command(),
       trace_spec(), presets_command(), profile_command(), config_command(), bench_command(), help_command()},
      {}};
}

}  // namespace foretoken

#include "cli/device_flags.hpp"

#include "backend/cpu/model.hpp"
#include "backend/plugin.hpp"
#include "cli/bench_machine.hpp"
#include "cli/output.hpp"
#include "sim/base/error.hpp"

namespace foretoken {

void add_device_flags(CommandSpec& command, DeviceFlags& flags) {
  command.options.push_back(
      {"--backend", &flags.backend, "NAME", "cpu, cuda, or cuda-emulated: the CUDA backend without a GPU"});
  command.options.push_back(
      {"--threads", &flags.threads, "COUNT", "Threads; 0: all processors", false, kThreads});
}

void check_device(const DeviceFlags& flags) {
  if (flags.backend != "cpu" && flags.backend != "cuda" && flags.backend != "cuda-emulated")
    throw UsageError("--backend: expected cpu, cuda or cuda-emulated, found \"" + flags.backend + "\"");
  if (flags.backend == "cpu") check_isa();
}

void check_fits(const DeviceFlags& flags, const MemoryNeeds& needs) {
  // Another device counts its own memory when it is asked for it.
  if (flags.backend == "cpu") check_memory(needs);
}

std::unique_ptr<DeviceModel> live_model(const Scenario& scenario, const DeviceFlags& flags) {
  check_device(flags);
  const int threads = static_cast<int>(flags.threads);
  if (flags.backend == "cpu") {
    return std::make_unique<CpuModel>(*scenario.shape, live_type(scenario), threads, scenario.seed,
                                      &interrupted());
  }
  PluginModelOptions options;
  options.weight_precision = scenario.deployment.weight_precision;
  options.kv_precision = scenario.deployment.kv_precision;
  options.seed = scenario.seed;
  options.threads = threads;
  return open_plugin(flags.backend == "cuda" ? PluginKind::cuda : PluginKind::cuda_emulated)
      .random_model(*scenario.shape, options);
}

}  // namespace foretoken

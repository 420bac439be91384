#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "backend/cpu/memory_needs.hpp"
#include "backend/decoder.hpp"
#include "cli/command.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

/// Where a model runs.
struct DeviceFlags {
  std::string backend = "cpu";
  /// Of the CPU backend; 0: all processors.
  std::int64_t threads = 0;
};

/// `--backend` and `--threads`.
void add_device_flags(CommandSpec& command, DeviceFlags& flags);
/// UsageError where a value is none of those offered.
void check_device(const DeviceFlags& flags);
/// Refuses what does not fit into this machine's memory before any of it is made: a DeviceError.
void check_fits(const DeviceFlags& flags, const MemoryNeeds& needs);
/// The scenario's model with seeded weights, on the device asked for. DeviceError where there is none or its
/// memory is short.
std::unique_ptr<DeviceModel> live_model(const Scenario& scenario, const DeviceFlags& flags);

}  // namespace foretoken

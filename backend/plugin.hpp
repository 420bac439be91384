#pragma once
#include <cstdint>
#include <memory>

#include "backend/decoder.hpp"

namespace foretoken {

/// Which shared object to open.
enum class PluginKind : std::uint8_t {
  cuda,           ///< NVIDIA GPUs.
  cuda_emulated,  ///< The same kernels and the same backend as C++ on this machine's processors.
};

/// How a plugin's model is made.
struct PluginModelOptions {
  Precision weight_precision = Precision::bf16;
  Precision kv_precision = Precision::bf16;
  std::uint64_t seed = 1;
  /// Host threads for making weights and, where it is emulated, for the device; 0: all processors.
  int threads = 0;
};

/// What a device's shared object offers. It stays loaded until the program ends.
class DevicePlugin {
 public:
  virtual ~DevicePlugin() = default;
  /// A model with seeded random weights, the same numbers as on the CPU. DeviceError where there is no device
  /// or its memory is short; InputError where the device has no kernels for the model.
  virtual std::unique_ptr<DeviceModel> random_model(const ModelShape& shape,
                                                    const PluginModelOptions& options) = 0;
};

/// Opens a device's shared object, which is no part of this program so that it starts in milliseconds and on
/// machines without a driver. It is looked for in the folder FORETOKEN_PLUGINS, beside the program, one
/// folder above it, and in ../lib/foretoken. DeviceError where it is not found or is of another build.
DevicePlugin& open_plugin(PluginKind kind);

/// The name under which a plugin exports `DevicePlugin* (const char* build)`, null for another build.
inline constexpr const char* kPluginSymbol = "foretoken_plugin";
/// What program and plugin must have in common, since they share classes.
const char* plugin_build();

}  // namespace foretoken

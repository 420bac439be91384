#include <cstring>

#include "backend/cuda/model.hpp"
#include "backend/plugin.hpp"

namespace foretoken {
namespace {

class CudaPlugin final : public DevicePlugin {
 public:
  std::unique_ptr<DeviceModel> random_model(const ModelShape& shape,
                                            const PluginModelOptions& options) override {
    return std::make_unique<CudaModel>(shape, options);
  }
};

}  // namespace
}  // namespace foretoken

/// See kPluginSymbol.
extern "C" __attribute__((visibility("default"))) foretoken::DevicePlugin* foretoken_plugin(
    const char* build) {
  static foretoken::CudaPlugin plugin;
  return std::strcmp(build, foretoken::plugin_build()) == 0 ? &plugin : nullptr;
}

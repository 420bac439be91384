#include "backend/plugin.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/version.hpp"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

struct PluginName {
  const char* file;
  const char* backend;
};

PluginName name_of(PluginKind kind) {
  if (kind == PluginKind::cuda) return {"libforetoken_cuda.so", "cuda"};
  return {"libforetoken_cuda_emulated.so", "cuda-emulated"};
}

std::vector<fs::path> folders() {
  std::vector<fs::path> list;
  if (const char* named = std::getenv("FORETOKEN_PLUGINS"); named != nullptr && *named != '\0')
    list.emplace_back(named);
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return list;
  list.push_back(program.parent_path());
  list.push_back(program.parent_path().parent_path());
  list.push_back(program.parent_path().parent_path() / "lib" / "foretoken");
  return list;
}

DevicePlugin& load(PluginKind kind) {
  const PluginName name = name_of(kind);
  const std::string prefix = "--backend " + std::string(name.backend) + ": ";
  std::string looked;
  for (const fs::path& folder : folders()) {
    const fs::path file = folder / name.file;
    std::error_code failed;
    if (!fs::exists(file, failed)) {
      looked += (looked.empty() ? "" : ", ") + folder.string();
      continue;
    }
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw DeviceError(prefix + ::dlerror());
    using Entry = DevicePlugin* (*)(const char*);
    const auto entry = reinterpret_cast<Entry>(::dlsym(library, kPluginSymbol));
    DevicePlugin* const plugin = entry == nullptr ? nullptr : entry(plugin_build());
    if (plugin == nullptr)
      throw DeviceError(prefix + file.string() + " is of another build than the program");
    return *plugin;
  }
  throw DeviceError(prefix + "no " + name.file + " in " + looked +
                    "; builds have it where a CUDA compiler was found");
}

}  // namespace

DevicePlugin& open_plugin(PluginKind kind) {
  static std::array<DevicePlugin*, 2> opened{};
  DevicePlugin*& plugin = opened[static_cast<std::size_t>(kind)];
  if (plugin == nullptr) plugin = &load(kind);
  return *plugin;
}

const char* plugin_build() {
  static const std::string text = std::string(build_info().version) + " " +
                                  std::string(build_info().compiler) + " " +
                                  std::string(build_info().git_hash);
  return text.c_str();
}

}  // namespace foretoken

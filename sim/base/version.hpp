#pragma once
#include <string_view>

namespace foretoken {

/// What this build is; the version number itself stands in CMakeLists.txt alone.
struct BuildInfo {
  std::string_view version;     ///< "0.1.0"
  std::string_view git_hash;    ///< commit built, or "unknown" outside a repository
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view build_type;  ///< "Release"
  std::string_view sanitize;    ///< "OFF" or the sanitizers compiled in
  bool has_audit;               ///< whether the expensive checks are compiled in
  bool has_cuda;                ///< whether the CUDA plugin was built
};

/// The facts of the running program.
const BuildInfo& build_info();

}  // namespace foretoken

#include "cli/version.hpp"

#include "sim/base/json.hpp"
#include "sim/base/version.hpp"
#include "sim/metrics/report.hpp"

namespace foretoken {

std::string version_text(bool json) {
  const BuildInfo& build = build_info();
  if (!json) {
    std::string text = "foretoken " + std::string(build.version);
    text.append(" (").append(build.git_hash).append(", ").append(build.compiler).append(", ");
    text.append(build.build_type).append(build.has_cuda ? ", CUDA" : ", CPU only");
    if (build.sanitize != "OFF") text.append(", sanitizers ").append(build.sanitize);
    return text + ")\n";
  }
  const Json document = Json::object({{"schema_version", kReportSchemaVersion},
                                      {"tool", "foretoken"},
                                      {"version", build.version},
                                      {"git_hash", build.git_hash},
                                      {"compiler", build.compiler},
                                      {"build_type", build.build_type},
                                      {"sanitize", build.sanitize},
                                      {"audit", build.has_audit},
                                      {"cuda", build.has_cuda}});
  return document.dump(2) + "\n";
}

}  // namespace foretoken

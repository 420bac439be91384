#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "sim/base/files.hpp"
#include "sim/base/version.hpp"
#include "tests/catch.hpp"

namespace fs = std::filesystem;

namespace {

/// Runs a shell command with its output in `log`; its exit code.
int run(const std::string& command, const std::string& log) {
  const int status = std::system((command + " > '" + log + "' 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("an installed foretoken is found by another project, which simulates with it", "[install]") {
  const fs::path folder = fs::temp_directory_path() / ("foretoken-install-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string at = folder.string();
  const std::string cmake = FORETOKEN_CMAKE;
  const std::string log = at + "/log";
  const auto require_success = [&](const std::string& command) {
    const int code = run(command, log);
    INFO(command << "\n" << foretoken::read_file(log));
    REQUIRE(code == 0);
  };
  require_success(cmake + " --install '" FORETOKEN_BUILD_DIR "' --prefix '" + at + "/prefix'");
  require_success(cmake + " -G Ninja -S '" FORETOKEN_SOURCE_DIR "/tests/install/consumer' -B '" + at +
                  "/build' -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH='" + at + "/prefix'");
  require_success(cmake + " --build '" + at + "/build'");
  require_success(at + "/build/consumer");
  CHECK(foretoken::read_file(log) == "served 200 of 200 requests\n");
  require_success(at + "/prefix/bin/foretoken --version");
  CHECK(foretoken::read_file(log).find(std::string(foretoken::build_info().version)) != std::string::npos);

  // The headers stand alone: nothing of the source tree is needed, and nothing but them is installed as
  // headers.
  CHECK(fs::exists(folder / "prefix/include/foretoken/sim/simulation.hpp"));
  CHECK_FALSE(fs::exists(folder / "prefix/include/foretoken/sim/base/json.cpp"));
  fs::remove_all(folder);
}

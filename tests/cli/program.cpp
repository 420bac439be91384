#include "tests/cli/program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "sim/base/files.hpp"

namespace foretoken {

namespace {

/// A folder for as long as the test process lives.
struct ScratchFolder {
  std::string path = std::string(FORETOKEN_BUILD_DIR) + "/cli-scratch-" + std::to_string(::getpid());

  ScratchFolder() {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

const std::string& scratch_folder() {
  static const ScratchFolder folder;
  return folder.path;
}

ProgramResult run_program(const std::string& arguments, const std::string& before, const std::string& tail) {
  const std::string& folder = scratch_folder();
  const std::string out = folder + "/stdout.txt";
  const std::string error = folder + "/stderr.txt";
  const std::string redirect = tail.find('>') == std::string::npos ? " > " + out : "";
  const std::string command = "cd " + folder + " && set -o pipefail; " + before + " " + FORETOKEN_PROGRAM +
                              " " + arguments + " 2> " + error + " " + tail + redirect;
  write_file(folder + "/stdout.txt", "");
  write_file(folder + "/command.sh", command);
  const int status = std::system(("bash " + folder + "/command.sh").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out), read_file(error)};
}

}  // namespace foretoken

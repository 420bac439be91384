#include "tests/cli/refusal.hpp"

#include <algorithm>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretoken {

std::vector<std::string> scratch_listing() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch_folder())) {
    const std::string name = entry.path().filename().string();
    if (name != "stdout.txt" && name != "stderr.txt" && name != "command.sh") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void refuses(const std::string& arguments, int code, const std::vector<std::string>& parts,
             const std::string& tail, const std::string& before) {
  const std::vector<std::string> there = scratch_listing();
  const ProgramResult result = run_program(arguments, before, tail);
  INFO("foretoken " << arguments << ' ' << tail);
  INFO(result.error.substr(0, 600));
  CHECK(result.code == code);
  CHECK(result.out.empty());
  CHECK(result.error.starts_with("foretoken: error: "));
  // CLI11's own errors are followed by where to read more.
  const auto lines = std::count(result.error.begin(), result.error.end(), '\n');
  CHECK((lines == 1 || (lines == 2 && result.error.find("\nTry: foretoken") != std::string::npos)));
  CHECK(result.error.size() < 1200);
  for (const std::string& part : parts) {
    INFO("part: " << part);
    CHECK(result.error.find(part) != std::string::npos);
  }
  CHECK((scratch_listing() == there));
}

}  // namespace foretoken

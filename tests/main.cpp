#define CATCH_CONFIG_RUNNER
#include "tests/catch.hpp"

#include <filesystem>
#include <iostream>
#include <string_view>

namespace {

// ctest reports this exit code as "Skipped".
constexpr int kSkipped = 77;

bool is_for_gpu(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "[gpu]") return true;
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  if (is_for_gpu(count, arguments) && !std::filesystem::exists("/dev/nvidia0")) {
    std::cout << "no CUDA device: the tests for it are skipped\n";
    return kSkipped;
  }
  return Catch::Session().run(count, arguments);
}

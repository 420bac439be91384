#include <filesystem>
#include <string>

#include "cli/command.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretoken {
namespace {

const std::string kTiny =
    "live demo --set model=tiny --requests 30 --rate 300 --quiet --backend cuda-emulated";

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a live run on the emulated CUDA device reports as any other, and says where it ran") {
  const ProgramResult run = run_program(kTiny + " --json");
  INFO(run.error);
  REQUIRE(run.code == kExitOk);
  const Json document = Json::parse(run.out, "out", true);
  CHECK(says(run.out, "live on emulated"));
  CHECK(document.find("interrupted") == nullptr);
}

TEST_CASE("a device without memory says who asked for how much, and how much is free") {
  const ProgramResult run = run_program(kTiny, "FORETOKEN_EMULATED_BYTES=3000000");
  CHECK(run.code == kExitDevice);
  CHECK(run.out.empty());
  CHECK(says(run.error, "no memory for"));
  CHECK(says(run.error, "asked"));
  CHECK(says(run.error, "free"));
}

TEST_CASE("a device that is lost ends the run with what it has") {
  const ProgramResult run = run_program(kTiny + " --json", "FORETOKEN_EMULATED_WAITS=150");
  CHECK(run.code == kExitDevice);
  CHECK(says(run.error, "lost"));
  const Json document = Json::parse(run.out, "out", true);
  REQUIRE(document.find("device_error") != nullptr);
  CHECK(says(document.find("device_error")->as_string(), "lost"));
  CHECK(says(run.out, "\"offered\""));
}

TEST_CASE("backends that are not there are refused by name") {
  const ProgramResult unknown = run_program("live demo --backend tpu");
  CHECK(unknown.code == kExitUsage);
  CHECK(says(unknown.error, "cuda-emulated"));
  const std::string folder = scratch_folder() + "/no_plugins";
  std::filesystem::create_directories(folder);
  write_file(folder + "/libforetoken_cuda_emulated.so", "this is no shared object");
  const ProgramResult broken = run_program(kTiny, "FORETOKEN_PLUGINS=" + folder);
  CHECK(broken.code == kExitDevice);
  CHECK(says(broken.error, "libforetoken_cuda_emulated.so"));
}

TEST_CASE("without a GPU the CUDA backend says so and offers the others") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    WARN("there is a GPU: its absence is not tried");
    return;
  }
  const ProgramResult run = run_program("live demo --backend cuda");
  CHECK(run.code == kExitDevice);
  CHECK((says(run.error, "no device") || says(run.error, "no libforetoken_cuda.so")));
}

}  // namespace foretoken

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/model.hpp"
#include "tests/backend/busy_scenario.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

// ThreadSanitizer slows spinning workers some twenty times, and watches threads, not policies.
#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t kRequests = 20;
constexpr std::uint64_t kSeeds = 1;
#else
constexpr std::int64_t kRequests = 60;
constexpr std::uint64_t kSeeds = 2;
#endif

}  // namespace

TEST_CASE("a live run fed back makes the same plans, by both tests", "[property][live]") {
  CpuModel model(testing::shipped_shape("tiny"), ElementType::f32, 2, 1);
  for (const std::string preset : {"vllm-v1", "sarathi", "vllm-v0", "orca", "static"})
    for (const int depth : {0, 1})
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        INFO(preset << " depth " << depth << " seed " << seed);
        testing::check_replays(testing::busy_scenario(preset, depth, seed, false, false, kRequests), model);
      }
  testing::check_replays(testing::busy_scenario("vllm-v1", 1, 9, true, false, kRequests), model);
  testing::check_replays(testing::busy_scenario("vllm-v0", 0, 9, false, true, kRequests), model);
}

}  // namespace foretoken

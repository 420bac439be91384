#include "tests/catch.hpp"
#include "tests/support/run_laws.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("skipping ahead over identical decode steps gives what one step at a time gives", "[property]") {
  for_each_seed(1500, [](Draw& draw) { skipping_is_stepping(draw); });
}

TEST_CASE("walking every resident gives what the fast paths give", "[property]") {
  for_each_seed(1500, [](Draw& draw) { fast_paths_are_walks(draw); });
}

TEST_CASE("the same setup gives the same run", "[property]") {
  for_each_seed(100, [](Draw& draw) { runs_repeat(draw); });
}

TEST_CASE("recorded step durations bring the same plans back, whether ends are known or waited for",
          "[property]") {
  for_each_seed(400, [](Draw& draw) { records_replay(draw); });
}

TEST_CASE("a cap on chunks that no prompt reaches is no cap, and an endless budget no budget", "[property]") {
  for_each_seed(400, [](Draw& draw) { endless_limits_are_none(draw); });
}

TEST_CASE("a prefix cache without shared prefixes and without preemptions is no cache", "[property]") {
  for_each_seed(400, [](Draw& draw) { nothing_shared_is_no_cache(draw); });
}

TEST_CASE("with memory for all, what is reserved and what is taken does not matter", "[property]") {
  for_each_seed(300, [](Draw& draw) { memory_for_all_is_endless(draw); });
}

TEST_CASE("with one sequence at a time, the phases of a step do not matter", "[property]") {
  for_each_seed(300, [](Draw& draw) { one_at_a_time_has_no_phases(draw); });
}

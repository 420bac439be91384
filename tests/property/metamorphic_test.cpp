#include "tests/catch.hpp"
#include "tests/support/part_laws.hpp"
#include "tests/support/run_laws.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("all costs and gaps times c: all times times c, exactly", "[property]") {
  for_each_seed(300, [](Draw& draw) { times_scale(draw); });
}

TEST_CASE("all arrivals shifted: all times shifted", "[property]") {
  for_each_seed(300, [](Draw& draw) { times_shift(draw); });
}

TEST_CASE("up to any moment, a run is the same whatever the lengths of answers turn out to be",
          "[property]") {
  for_each_seed(300, [](Draw& draw) { lengths_are_unknown(draw); });
}

TEST_CASE("a random stream is a function of seed, stream and position alone", "[property]") {
  for_each_seed(200, [](Draw& draw) { draws_stand_alone<RandomStream>(draw); });
}

TEST_CASE("the order in which a scenario's members are written changes nothing", "[property]") {
  for_each_seed(60, [](Draw& draw) { member_order_is_free(draw); });
}

TEST_CASE("a trace split into files offers what the whole offers", "[property]") {
  for_each_seed(60, [](Draw& draw) { split_trace_is_whole(draw); });
}

TEST_CASE("the end of a window is the sum of its steps, whatever it grows by", "[property]") {
  for_each_seed(200, [](Draw& draw) { windows_are_sums<Window>(draw); });
}

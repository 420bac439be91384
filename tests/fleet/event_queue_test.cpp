#include "sim/fleet/event_queue.hpp"

#include "tests/catch.hpp"
#include "tests/support/part_laws.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("the queue gives events in the order of time, rank and id, whatever moved in between",
          "[property]") {
  for_each_seed(200, [](Draw& draw) { queue_is_in_order<EventQueue>(draw); });
}

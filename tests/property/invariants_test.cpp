#include "tests/catch.hpp"
#include "tests/support/audit.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("every plan and event of a run keeps the laws of safety, order and progress", "[property]") {
  for_each_seed(600, [](Draw& draw) { audited(draw_setup(draw)); });
}

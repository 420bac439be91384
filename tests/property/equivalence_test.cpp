#include "tests/catch.hpp"
#include "tests/support/stage.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("skipping ahead over identical decode steps gives what one step at a time gives", "[property]") {
  for_each_seed(400, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.engine.skip_ahead = true;
    const EventLog skipped = log_of(setup);
    setup.engine.skip_ahead = false;
    require_equal(skipped.entries(), log_of(setup).entries(), "skipping and stepping");
  });
}

TEST_CASE("walking every resident gives what the fast paths give", "[property]") {
  for_each_seed(400, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.scheduler = {draw.chance(0.5), true};
    const EventLog fast = log_of(setup);
    setup.scheduler = {draw.chance(0.5), false};
    require_equal(fast.entries(), log_of(setup).entries(), "fast paths and walks");
  });
}

#include "sim/fleet/driver.hpp"

#include "tests/catch.hpp"
#include "tests/support/run_laws.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

/// Requests in turn.
class InTurn final : public Router {
 public:
  explicit InTurn(std::uint32_t engines) : engines_(engines) {}
  std::uint32_t route(const Offer&, Time) override { return next_++ % engines_; }

 private:
  std::uint32_t engines_;
  std::uint32_t next_ = 0;
};

}  // namespace

TEST_CASE("a fleet of one replica is that engine", "[property]") {
  for_each_seed(200, [](Draw& draw) {
    fleet_of_one_is_the_engine(draw, [](const Setup& setup) {
      Stage stage(setup);
      EventLog log;
      Engine engine(stage.scheduler, stage.executor, log, setup.engine);
      Engine* const engines[] = {&engine};
      VirtualClock clock;
      InTurn router(1);
      LAW(foretoken::run(stage.source, engines, clock, &router).drained);
      return log;
    });
  });
}

TEST_CASE("replicas of a fleet go their own ways, each as if it were alone with its requests", "[property]") {
  for_each_seed(200, [](Draw& draw) {
    Traits traits;
    traits.closed_loop = false;
    const Setup setup = draw_setup(draw, traits);
    Setup other = setup;
    other.policy = draw_policy(draw);
    other.policy.block_tokens = setup.policy.block_tokens;
    Stage first(setup), second(other);
    EventLog first_log, second_log;
    Engine first_engine(first.scheduler, first.executor, first_log, setup.engine);
    Engine second_engine(second.scheduler, second.executor, second_log, setup.engine);
    Engine* const engines[] = {&first_engine, &second_engine};
    VirtualClock clock;
    InTurn router(2);
    LAW(foretoken::run(first.source, engines, clock, &router).drained);
    for (const std::size_t share : {0u, 1u}) {
      Setup alone = share == 0 ? setup : other;
      std::vector<std::int64_t> names;
      alone.items.clear();
      for (std::size_t i = share; i < setup.items.size(); i += 2) {
        alone.items.push_back(setup.items[i]);
        names.push_back(static_cast<std::int64_t>(i));
      }
      Stage stage(alone);
      EventLog log(names);
      LAW(stage.run(stage.executor, log).drained);
      require_equal(log.entries(), (share == 0 ? first_log : second_log).entries(), "alone and in the fleet");
    }
  });
}

TEST_CASE("a run ends at its horizon and when it is stopped, and says so") {
  Setup setup;
  setup.capacity = {64, 0, 100, false};
  for (int i = 0; i < 10; ++i) {
    Item item;
    item.offer.request.arrival = Time{Duration{i * 100000}};
    item.offer.request.prompt_tokens = 4;
    item.offer.output_tokens = 3;
    setup.items.push_back(item);
  }
  const auto run_until = [&](RunLimits limits) {
    Stage stage(setup);
    EventLog log;
    Engine engine(stage.scheduler, stage.executor, log);
    Engine* const engines[] = {&engine};
    VirtualClock clock;
    return foretoken::run(stage.source, engines, clock, nullptr, limits);
  };
  const RunResult whole = run_until({});
  CHECK((whole.drained && !whole.stopped && whole.end > Time{Duration{900000}}));
  const RunResult cut = run_until({Time{Duration{450000}}, nullptr});
  CHECK((!cut.drained && cut.end <= Time{Duration{450000}}));
  const std::atomic<bool> stop{true};
  const RunResult stopped = run_until({kNever, &stop});
  CHECK((stopped.stopped && stopped.events == 0));
}

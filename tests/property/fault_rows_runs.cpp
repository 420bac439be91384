#include <memory>

#include "tests/property/fault_rows.hpp"
#include "tests/support/run_laws.hpp"

namespace foretoken::laws {
namespace {

/// Changes the windows of the executor that it is put around.
class WindowFault final : public ExecutorAround {
 public:
  WindowFault(Executor& inner, std::function<void(const StepPlan&, Window&)> change)
      : ExecutorAround(inner), change_(std::move(change)) {}
  Window launch(const StepPlan& plan, Time begin) override {
    Window window = inner_.launch(plan, begin);
    change_(plan, window);
    return window;
  }

 private:
  std::function<void(const StepPlan&, Window&)> change_;
};

/// A runner whose executor prices steps in a wrong way.
Runner pricing(const std::function<void(const StepPlan&, Window&)>& change) {
  return [change](const Setup& setup) {
    return log_with(setup, [&](Executor& inner) { return std::make_unique<WindowFault>(inner, change); });
  };
}

/// A runner that runs something else than it was given.
Runner running(const std::function<void(Setup&)>& change) {
  return [change](Setup setup) {
    change(setup);
    return log_of(setup);
  };
}

using RunLaw = void (*)(Draw&, const Runner&);

FaultRow run_row(const char* laws, const char* fault, const char* breach, RunLaw law, const Runner& faulty,
                 int seeds = 60) {
  return drawn_row(laws, fault, breach, seeds, [law, faulty](Draw& draw, bool with_fault) {
    law(draw, with_fault ? faulty : Runner(log_of));
  });
}

/// The run with a router in front of the engine, from a source that is `late` or not.
EventLog routed(const Setup& setup, bool late) {
  struct First final : Router {
    std::uint32_t route(const Offer&, Time) override { return 0; }
  };
  struct Late final : SourceAround {
    using SourceAround::SourceAround;
    Time next_time() override {
      const Time t = inner_.next_time();
      return t == kNever ? t : t + Duration{1};
    }
  };
  Stage stage(setup);
  EventLog log;
  Engine engine(stage.scheduler, stage.executor, log, setup.engine);
  Engine* const engines[] = {&engine};
  VirtualClock clock;
  First router;
  Late behind(stage.source);
  Source& source = late ? static_cast<Source&>(behind) : stage.source;
  LAW(foretoken::run(source, engines, clock, &router).drained);
  return log;
}

/// A stream whose draws depend on what was drawn before.
class RememberingStream {
 public:
  RememberingStream(std::uint64_t seed, std::uint64_t stream) : stream_(seed, stream) {}
  std::uint64_t bits(std::uint64_t i) const { return stream_.bits(i); }
  double gamma(std::uint64_t, double shape) const { return stream_.gamma(next_++, shape); }

 private:
  RandomStream stream_;
  mutable std::uint64_t next_ = 0;
};

void equivalence_rows(std::vector<FaultRow>& rows) {
  rows.push_back(run_row(
      "8", "steps of a window grow too fast", "skipping and stepping differ", skipping_is_stepping,
      pricing([](const StepPlan& plan, Window& window) { window.growth += Duration{plan.decode_count}; })));
  rows.push_back(run_row("8", "whoever walks pays for it", "fast paths and walks differ",
                         fast_paths_are_walks, running([](Setup& setup) {
                           if (!setup.scheduler.fast_paths) ++setup.prices.step;
                         })));
  rows.push_back(drawn_row("9 I13", "a record says of one step that it took longer", "run and replay differ",
                           60, [](Draw& draw, bool faulty) {
                             records_replay(draw, [faulty](std::vector<Duration>& kept) {
                               if (faulty && !kept.empty()) kept.front() += Duration{1};
                             });
                           }));
  rows.push_back(drawn_row("10", "behind a router, arrivals are late", "fleet of one and engine differ", 60,
                           [](Draw& draw, bool faulty) {
                             fleet_of_one_is_the_engine(
                                 draw, [faulty](const Setup& setup) { return routed(setup, faulty); });
                           }));
  rows.push_back(run_row("10", "a cap on chunks that no prompt reaches cuts prompts",
                         "no limit and one that is never reached differ", endless_limits_are_none,
                         running([](Setup& setup) {
                           if (setup.policy.chunk_tokens_max > 0) setup.policy.chunk_tokens_max = 2;
                         })));
  rows.push_back(run_row("10", "a cache finds what nobody shares", "without and with a cache differ",
                         nothing_shared_is_no_cache, running([](Setup& setup) {
                           for (Item& item : setup.items) {
                             if (!setup.policy.prefix_cache) break;
                             item.offer.request.hash_block_tokens = setup.policy.block_tokens;
                             item.hashes = std::vector<std::uint64_t>(120, 7);
                           }
                         })));
}

void same_rows(std::vector<FaultRow>& rows) {
  const auto calls = std::make_shared<std::int64_t>(0);
  rows.push_back(
      run_row("I13", "a price depends on how often it was asked before", "two runs differ", runs_repeat,
              pricing([calls](const StepPlan&, Window& window) { window.first += Duration{++*calls}; })));
  rows.push_back(run_row("I13", "the scheduler knows how long answers will be",
                         "answers of other lengths differ", lengths_are_unknown, running([](Setup& setup) {
                           setup.policy.order = Order::shortest_predicted;
                           for (Item& item : setup.items)
                             item.offer.request.predicted_output_tokens = item.offer.output_tokens;
                         })));
  rows.push_back(run_row("I13", "a window's end is foreseen from the lengths of answers",
                         "answers of other lengths differ", lengths_are_unknown, running([](Setup& setup) {
                           for (const Item& item : setup.items) setup.prices.step += item.offer.output_tokens;
                         })));
  rows.push_back(run_row("12", "a cost is stated in a unit that does not scale", "scaled times differ",
                         times_scale,
                         pricing([](const StepPlan&, Window& window) { window.first += Duration{1}; })));
  rows.push_back(run_row("12", "a time limit does not scale", "scaled times differ", times_scale,
                         running([](Setup& setup) {
                           for (Item& item : setup.items) item.offer.patience = Duration{700};
                         })));
  rows.push_back(run_row("12", "a price depends on the time of day", "shifted times differ", times_shift,
                         pricing([](const StepPlan&, Window& window) {
                           window.first += Duration{picoseconds(window.begin) % 7};
                         })));
  rows.push_back(
      drawn_row("13", "draws share a hidden state", "second.gamma", 1, [](Draw& draw, bool faulty) {
        if (faulty)
          draws_stand_alone<RememberingStream>(draw);
        else
          draws_stand_alone<RandomStream>(draw);
      }));
}

}  // namespace

std::vector<FaultRow> run_rows() {
  std::vector<FaultRow> rows;
  equivalence_rows(rows);
  same_rows(rows);
  return rows;
}

}  // namespace foretoken::laws

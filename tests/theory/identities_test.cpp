// Identities: they hold on every path, to the picosecond.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/presets.hpp"
#include "tests/catch.hpp"
#include "tests/support/queue.hpp"

using namespace foretoken;
using namespace foretoken::laws;
using namespace foretoken::theory;

namespace {

/// Requests with drawn gaps and lengths; ties are common.
std::vector<Item> drawn_items(Draw& draw, std::int64_t gap_max) {
  std::vector<Item> items;
  const std::int32_t count = draw.requests(20, 200);
  const std::int64_t grid = draw.pick({1, 250, 1000});
  std::int64_t t = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    Item item;
    t += draw.chance(0.2) ? 0 : draw.between(0, gap_max / grid) * grid;
    Request& r = item.offer.request;
    r.arrival = Time{Duration{t}};
    r.prompt_tokens = draw.small(1, 60);
    r.slo_class = static_cast<std::uint16_t>(draw.small(0, 3));
    item.offer.output_tokens = draw.chance(0.1) ? 0 : draw.small(1, 30);
    r.max_new_tokens = item.offer.output_tokens;
    items.push_back(item);
  }
  return items;
}

Prices uneven_prices(Draw& draw) {
  Prices prices;
  prices.step = draw.pick({1000, 777});
  prices.chunk_token = draw.pick({10, 13});
  prices.decode_row = draw.pick({0, 5, 250});
  prices.context_token = draw.pick({0, 1, 3});
  prices.window_max = draw.pick({1, 3, 1 << 20});
  return prices;
}

/// The preset's policy; static batches start as soon as somebody is there.
Policy policy_of(const Preset& preset) {
  Policy policy = preset.policy();
  if (policy.release_at_batch_end) policy.join = Join::count_or_timeout;
  return policy;
}

/// The preset's policy with one sequence at a time and room for any prompt in one step.
Setup one_at_a_time(const Preset& preset, int depth) {
  Setup setup = single_server();
  setup.policy = policy_of(preset);
  setup.policy.sequences_max = 1;
  setup.policy.batch_tokens_max = 0;
  setup.policy.depth = depth;
  setup.capacity = {128, 0, 100, false};
  return setup;
}

}  // namespace

TEST_CASE("Lindley: with one sequence at a time every preset is the same first-come queue", "[theory]") {
  for_each_seed(60, [](Draw& draw) {
    const std::vector<Item> items = drawn_items(draw, 40000);
    const Prices prices = uneven_prices(draw);
    for (const Preset& preset : presets()) {
      for (const int depth : {0, 1}) {
        Setup setup = one_at_a_time(preset, depth);
        setup.items = items;
        setup.prices = prices;
        setup.engine.skip_ahead = draw.chance(0.7);
        setup.scheduler.fast_paths = draw.chance(0.7);
        draw.note(std::string(preset.name) + " depth " + std::to_string(depth));
        require_lindley(setup, run_queue(setup));
      }
    }
  });
}

TEST_CASE("Lindley: an end that is seen one step late costs the server one step", "[theory]") {
  // At depth 1, while the last token is being made, one more is planned for, unless the bound on the answer
  // forbids it.
  for_each_seed(60, [](Draw& draw) {
    Setup setup = one_at_a_time(*find_preset("vllm-v1"), 1);
    setup.items = drawn_items(draw, 40000);
    setup.prices = uneven_prices(draw);
    for (Item& item : setup.items)
      if (item.offer.output_tokens > 0 && draw.chance(0.7)) item.offer.request.max_new_tokens += 2;
    const auto wasted = [&](std::size_t i) {
      const Offer& o = setup.items[i].offer;
      if (o.output_tokens == 0 || o.request.max_new_tokens == o.output_tokens) return std::int64_t{0};
      return service_ps(setup.prices, o.request.prompt_tokens, o.output_tokens + 1) -
             service_ps(setup.prices, o.request.prompt_tokens, o.output_tokens);
    };
    require_lindley(setup, run_queue(setup), wasted);
  });
}

TEST_CASE("Little: the integral of the number in the system is the sum of the times in it", "[theory]") {
  for_each_seed(200, [](Draw& draw) {
    Traits traits;
    traits.requests_max = 60;
    Setup setup = draw_setup(draw, traits);
    // Only who is let in is in the system, so everybody is made to fit.
    const Scheduler probe(setup.policy, setup.capacity, setup.scheduler);
    LAW(probe.sequence_tokens_max() >= 2);
    for (Item& item : setup.items) {
      Request& r = item.offer.request;
      r.slo_class = static_cast<std::uint16_t>(draw.small(0, 3));
      const std::int32_t longest = std::min(setup.capacity.model_tokens_max, probe.sequence_tokens_max());
      r.prompt_tokens = std::min(r.prompt_tokens, longest - 1);
      r.max_new_tokens = std::min(r.max_new_tokens, longest - r.prompt_tokens);
      if (r.max_new_tokens >= 0)
        item.offer.output_tokens = std::min(item.offer.output_tokens, r.max_new_tokens);
    }
    const QueueRun run = run_queue(setup);
    LAW(run.visits.size() == setup.items.size());
    require_little(run);
  });
}

TEST_CASE("as many arrivals find n in the system as departures leave n behind", "[theory]") {
  // Every path from empty to empty crosses each level upwards as often as downwards.
  for_each_seed(100, [](Draw& draw) {
    Setup setup = single_server();
    setup.policy.sequences_max = draw.small(1, 6);
    setup.policy.order = draw.pick({Order::fcfs, Order::shortest_prompt});
    setup.items = drawn_items(draw, 9000);
    setup.prices = uneven_prices(draw);
    QueueRun run = run_queue(setup);
    const std::size_t levels = std::max(run.found.size(), run.left_behind.size());
    run.found.resize(levels);
    run.left_behind.resize(levels);
    LAW(run.found == run.left_behind);
    LAW(run.found[0] > 0);
  });
}

TEST_CASE("Poisson arrivals see what an outside observer sees", "[theory]") {
  // PASTA: the share of arrivals that find n is the share of time with n; the empty system has 1 - load.
  Setup setup = single_server();
  setup.prices = {};
  setup.prices.step = 200'000'000;
  setup.prices.chunk_token = 1'000'000;
  std::vector<std::vector<double>> differences(4);
  std::vector<double> empty;
  for (std::uint64_t r = 0; r < 20; ++r) {
    WorkloadSpec spec = poisson(1000.0, 12000, 900 + r);
    spec.classes[0].prompt_tokens = uniform_length(100, 700);
    spec.classes[0].output_tokens = fixed_length(1);
    const auto source = make_source(spec);
    const QueueRun run = run_queue(setup, *source);
    const double end = static_cast<double>(picoseconds(run.end));
    for (std::size_t n = 0; n < differences.size(); ++n)
      differences[n].push_back(static_cast<double>(run.found[n]) / 12000.0 -
                               static_cast<double>(run.with_exactly[n]) / end);
    empty.push_back(static_cast<double>(run.found[0]) / 12000.0);
  }
  for (const auto& of_level : differences) {
    const Interval interval = interval_of(of_level);
    INFO(interval.mean << " +- " << interval.half);
    CHECK(interval.holds(0.0));
    CHECK(interval.half < 0.02);
  }
  // The load is 1000/s times 0.2 + 0.4 ms.
  const Interval interval = interval_of(empty);
  INFO(interval.mean << " +- " << interval.half);
  CHECK(interval.holds(0.4));
}

TEST_CASE("a server works exactly while somebody is there, and as long as the work takes", "[theory]") {
  for_each_seed(100, [](Draw& draw) {
    Setup setup = single_server();
    setup.items = drawn_items(draw, 20000);
    setup.prices = uneven_prices(draw);
    setup.policy.order = draw.pick({Order::fcfs, Order::shortest_prompt});
    const QueueRun run = run_queue(setup);
    std::int64_t work = 0;
    for (const Visit& v : run.visits) work += service_ps(setup.prices, v.prompt_tokens, v.output_tokens);
    LAW(run.busy.count() == work, run.busy.count(), work);
    // Time with nobody there, up to the last end, is the time that is not busy.
    LAW(picoseconds(run.end) - work == run.with_exactly[0], run.with_exactly[0]);
  });
}

TEST_CASE("where steps cost what their tokens cost, all engines are busy at the same times", "[theory]") {
  // The work that is left does not depend on who gets the next token, as long as somebody does: the
  // unfinished work of every work-conserving order falls and jumps alike.
  for_each_seed(60, [](Draw& draw) {
    const std::vector<Item> items = drawn_items(draw, 3000);
    Prices prices;
    prices.step = 0;
    prices.chunk_token = draw.pick({1, 10, 250});
    prices.decode_row = draw.pick({1, 7, 250});
    std::vector<BusyPeriod> expected;
    for (const Preset& preset : presets()) {
      // A batch that runs to its end keeps others out, but still works on what is there.
      Setup setup;
      setup.policy = policy_of(preset);
      setup.policy.sequences_max = draw.small(1, 300);
      if (setup.policy.batch_tokens_max > 0)
        setup.policy.batch_tokens_max = setup.policy.sequences_max + draw.small(90, 300);
      setup.policy.order = draw.pick({Order::fcfs, Order::shortest_prompt, Order::priority});
      setup.policy.depth = draw.small(0, 1);
      setup.capacity = {301 * 7, 0, 100, false};
      setup.prices = prices;
      setup.items = items;
      draw.note(describe(setup.policy, setup.capacity));
      const QueueRun run = run_queue(setup);
      if (expected.empty()) expected = run.busy_periods;
      LAW(run.busy_periods == expected, std::string(preset.name));
    }
  });
}

TEST_CASE("in a closed loop, clients divide their time between thinking and the system", "[theory]") {
  // The interactive response time law on a path: a client that began at 0 is, until its last end, either in
  // the system or thinking.
  for_each_seed(100, [](Draw& draw) {
    Setup setup = single_server();
    setup.policy.sequences_max = draw.small(1, 3);
    setup.prices = uneven_prices(draw);
    const int clients = draw.small(1, static_cast<int>(kClasses));
    const int turns = draw.small(1, 12);
    const Duration think{draw.between(0, 20) * 500};
    std::int64_t work = 0;
    for (int i = 0; i < clients * turns; ++i) {
      Item item;
      Request& r = item.offer.request;
      r.slo_class = static_cast<std::uint16_t>(i % clients);
      r.prompt_tokens = draw.small(1, 60);
      item.offer.output_tokens = draw.small(1, 20);
      if (i >= clients) item.after = i - clients;
      item.think = think;
      work += service_ps(setup.prices, r.prompt_tokens, item.offer.output_tokens);
      setup.items.push_back(item);
    }
    const QueueRun run = run_queue(setup);
    std::array<Time, kClasses> last{};
    for (const Visit& v : run.visits) last[v.slo_class] = std::max(last[v.slo_class], v.end);
    for (std::size_t k = 0; k < kClasses; ++k) {
      const std::int64_t thinking = k < static_cast<std::size_t>(clients) ? (turns - 1) * think.count() : 0;
      LAW(run.class_ps[k] + thinking == picoseconds(last[k]), k, run.class_ps[k], thinking);
    }
    // One at a time, the server bounds what the loop can do.
    if (setup.policy.sequences_max == 1) LAW(run.busy.count() == work && work <= picoseconds(run.end));
    LAW(run.busy.count() <= work);
  });
}

TEST_CASE("with equal services the order decides who waits, not how much is waited", "[theory]") {
  // Kleinrock's conservation law where all services are equal, on a path. First come, first served spreads
  // the waits most evenly: no other order has a smaller sum of squares.
  for_each_seed(100, [](Draw& draw) {
    Setup setup = single_server();
    setup.items = drawn_items(draw, 9000);
    setup.prices = uneven_prices(draw);
    for (Item& item : setup.items) {
      item.offer.request.priority = draw.small(0, 4);
      item.offer.request.predicted_output_tokens = draw.small(0, 4);
      item.offer.request.prompt_tokens = 20;
      item.offer.request.max_new_tokens = item.offer.output_tokens = 5;
    }
    const auto sums = [&](Order order) {
      setup.policy.order = order;
      std::int64_t sum = 0, squares = 0;
      for (const Visit& v : run_queue(setup).visits) {
        sum += v.wait();
        squares += v.wait() * v.wait();
      }
      return std::pair{sum, squares};
    };
    const auto [waited, squares] = sums(Order::fcfs);
    for (const Order order : {Order::priority, Order::shortest_predicted, Order::shortest_prompt}) {
      const auto [others_waited, others_squares] = sums(order);
      LAW(others_waited == waited, others_waited, waited);
      LAW(others_squares >= squares, others_squares, squares);
    }
  });
}

TEST_CASE("the laws of the queue notice faults that are seeded", "[theory]") {
  // A service that takes a picosecond more than its price.
  CHECK(times_noticed(20, [](Draw& draw) {
          Setup setup = single_server();
          setup.items = drawn_items(draw, 9000);
          const QueueRun run = run_queue(setup);
          --setup.prices.step;
          require_lindley(setup, run, [](std::size_t) { return 0; });
        }) == 20);
  // A server that lets the first request of a batch wait for a second one, unless all come in pairs.
  CHECK(times_noticed(20, [](Draw& draw) {
          Setup setup = single_server();
          setup.items = drawn_items(draw, 9000);
          setup.policy.join = Join::count_or_timeout;
          setup.policy.join_count = 2;
          setup.policy.join_timeout = Duration{500};
          const QueueRun run = run_queue(setup);
          LAW(picoseconds(run.end) - run.busy.count() == run.with_exactly[0]);
        }) >= 15);
  // An end that is told late: the scheduler and the books differ over who is there.
  CHECK(times_noticed(20, [](Draw& draw) {
          Setup setup = single_server();
          setup.items = drawn_items(draw, 9000);
          QueueRun run = run_queue(setup);
          run.visits.front().end += Duration{1};
          std::int64_t lives = 0;
          for (const Visit& v : run.visits) lives += v.sojourn();
          LAW(run.alive_ps == lives);
        }) == 20);
}

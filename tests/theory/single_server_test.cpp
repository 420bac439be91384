// One sequence at a time is a queue with one server, of which theory knows nearly everything.
#include <memory>

#include "tests/catch.hpp"
#include "tests/support/queue.hpp"

using namespace foretoken;
using namespace foretoken::theory;

namespace {

/// First and second moment of the service times of the counted requests.
struct Moments {
  double first = 0;
  double second = 0;
};
Moments service_moments(const QueueRun& run) {
  Moments moments;
  for (std::size_t i = kWarmUp; i < run.visits.size(); ++i) {
    const auto s = static_cast<double>((run.visits[i].end - run.visits[i].admitted).count());
    moments.first += s / static_cast<double>(kCounted);
    moments.second += s * s / static_cast<double>(kCounted);
  }
  return moments;
}

}  // namespace

TEST_CASE("M/D/1: the mean wait is that of Pollaczek and Khinchine at every load", "[theory]") {
  laws::Setup setup = millisecond_server();
  // 300 tokens of prompt and 3 of answer: 0.2 + 0.3 ms, then twice 0.25 ms.
  const std::int64_t service = 1'000'000'000;
  REQUIRE(service_ps(setup.prices, 300, 3) == service);
  for (const double load : {0.3, 0.5, 0.7, 0.8, 0.9}) {
    const std::vector<double> waits = deterministic_waits(setup, load, fixed_length(3));
    INFO("load " << load);
    const double expected = load * static_cast<double>(service) / (2 * (1 - load));
    require_mean(interval_of(waits), expected, 0.12);
    // Not the twice as long waits of exponential services.
    CHECK_FALSE(interval_of(waits).holds(2 * expected));
  }
}

TEST_CASE("M/G/1: the mean wait follows the first two moments of service", "[theory]") {
  // Answers uniform in 1 .. 9 and prompts uniform in 0.1 .. 0.5 ms: a service time is 0.2 ms + prompt, and
  // 0.25 ms for each further token.
  laws::Setup setup = millisecond_server();
  const double ms = 1e9;
  const double mean_service = 0.2 * ms + 0.3 * ms + 4 * 0.25 * ms;
  // Discrete uniform variances: ((b - a + 1)^2 - 1) / 12.
  const double variance = (401.0 * 401.0 - 1) / 12 * 1e12 + (81.0 - 1) / 12 * 0.25 * 0.25 * ms * ms;
  for (const double load : {0.4, 0.7, 0.85}) {
    const double rate = load / mean_service;
    std::vector<double> excess, first, second;
    for (std::size_t r = 0; r < kReplicates; ++r) {
      WorkloadSpec spec = poisson(rate * 1e12, kWarmUp + kCounted, 300 + r);
      spec.classes[0].prompt_tokens = uniform_length(100, 500);
      spec.classes[0].output_tokens = uniform_length(1, 9);
      const auto source = make_source(spec);
      const QueueRun run = run_queue(setup, *source);
      const Moments m = service_moments(run);
      first.push_back(m.first);
      second.push_back(m.second);
      // Against the formula for the very services that were sampled.
      excess.push_back(mean_wait(run) / (rate * m.second / (2 * (1 - rate * m.first))));
    }
    INFO("load " << load);
    require_mean(interval_of(first), mean_service, 0.02);
    require_mean(interval_of(second), variance + mean_service * mean_service, 0.04);
    require_mean(interval_of(excess), 1.0, 0.12);
  }
}

TEST_CASE("priorities without preemption: each class waits as Cobham says", "[theory]") {
  // Two classes with half of the arrivals each, urgent ones short. W_1 = W0 / (1 - r1),
  // W_2 = W0 / ((1 - r1)(1 - r)), W0 = sum of rate_k E[S_k^2] / 2.
  laws::Setup setup = millisecond_server();
  setup.policy.order = Order::priority;
  const double load = 0.7;
  const double s1 = 0.5e9, s2 = 1.5e9;
  const double rate = load / ((s1 + s2) / 2);
  const double w0 = rate / 2 * (s1 * s1 + s2 * s2) / 2;
  const double r1 = rate / 2 * s1;
  std::vector<double> urgent, other;
  for (std::size_t r = 0; r < kReplicates; ++r) {
    WorkloadSpec spec = poisson(rate * 1e12, kWarmUp + kCounted, 500 + r);
    spec.classes.resize(2);
    spec.classes[0].name = "urgent";
    spec.classes[1].name = "other";
    spec.classes[1].priority = 5;
    for (ClassSpec& kind : spec.classes) kind.prompt_tokens = fixed_length(300);
    spec.classes[0].output_tokens = fixed_length(1);
    spec.classes[1].output_tokens = fixed_length(5);
    const auto source = make_source(spec);
    const QueueRun run = run_queue(setup, *source);
    double sum[2] = {}, n[2] = {};
    for (std::size_t i = kWarmUp; i < run.visits.size(); ++i) {
      const Visit& v = run.visits[i];
      sum[v.slo_class] += static_cast<double>(v.wait());
      n[v.slo_class] += 1;
    }
    urgent.push_back(sum[0] / n[0]);
    other.push_back(sum[1] / n[1]);
  }
  require_mean(interval_of(urgent), w0 / (1 - r1), 0.1);
  require_mean(interval_of(other), w0 / ((1 - r1) * (1 - load)), 0.15);
}

TEST_CASE("D/D/1: nobody waits up to capacity, and beyond it each waits what it is short of", "[theory]") {
  laws::Setup setup = single_server();
  const std::int64_t service = service_ps(setup.prices, 10, 4);
  const auto run_with_gap = [&](std::int64_t gap) {
    setup.items.clear();
    for (std::int64_t i = 0; i < 500; ++i) {
      laws::Item item;
      item.offer.request.arrival = Time{Duration{i * gap}};
      item.offer.request.prompt_tokens = 10;
      item.offer.request.max_new_tokens = 4;
      item.offer.output_tokens = 4;
      setup.items.push_back(item);
    }
    return run_queue(setup);
  };
  for (const std::int64_t gap : {service + 1, service, service * 3}) {
    const QueueRun run = run_with_gap(gap);
    for (const Visit& v : run.visits) {
      CHECK(v.wait() == 0);
      CHECK(v.sojourn() == service);
    }
    // At capacity, one period without a gap.
    CHECK(run.busy_periods.size() == (gap == service ? 1u : 500u));
  }
  const QueueRun run = run_with_gap(service - 7);
  for (std::size_t i = 0; i < run.visits.size(); ++i)
    CHECK(run.visits[i].wait() == 7 * static_cast<std::int64_t>(i));
}

TEST_CASE("the share of time that a server is busy is its load", "[theory]") {
  laws::Setup setup = millisecond_server();
  for (const double load : {0.3, 0.6, 0.9}) {
    std::vector<double> shares;
    for (std::size_t r = 0; r < kReplicates; ++r) {
      WorkloadSpec spec = poisson(1000.0 * load, 6000, 700 + r);
      spec.classes[0].prompt_tokens = fixed_length(300);
      spec.classes[0].output_tokens = fixed_length(3);
      const auto source = make_source(spec);
      const QueueRun run = run_queue(setup, *source);
      CHECK(run.busy.count() == 6000 * service_ps(setup.prices, 300, 3));
      shares.push_back(static_cast<double>(run.busy.count()) / static_cast<double>(picoseconds(run.end)));
    }
    INFO("load " << load);
    require_mean(interval_of(shares), load, 0.03);
  }
}

#include "sim/workload/synthetic_source.hpp"

#include <array>
#include <cmath>
#include <set>

#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Detail::Approx;

namespace {

WorkloadSpec poisson(double rate_per_s, std::int64_t requests) {
  WorkloadSpec spec;
  spec.arrivals.rate_per_s = rate_per_s;
  spec.requests = requests;
  ClassSpec entry;
  entry.prompt_tokens = uniform_length(8, 64);
  entry.output_tokens = fixed_length(5);
  spec.classes.push_back(entry);
  return spec;
}

struct Gaps {
  double mean_s = 0;
  double cv = 0;
};

Gaps gaps_of(const WorkloadSpec& spec) {
  const auto source = make_source(spec);
  Time last{};
  double sum = 0, squares = 0, count = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    const double gap = seconds(offer.request.arrival - last);
    last = offer.request.arrival;
    sum += gap;
    squares += gap * gap;
    ++count;
  }
  const double mean_s = sum / count;
  return {mean_s, std::sqrt(squares / count - mean_s * mean_s) / mean_s};
}

}  // namespace

TEST_CASE("Poisson, gamma and on-off arrivals have the stated rate and variation", "[theory]") {
  const Gaps plain = gaps_of(poisson(40, 100'000));
  CHECK(plain.mean_s == Approx(0.025).epsilon(0.02));
  CHECK(plain.cv == Approx(1).epsilon(0.02));

  for (const double cv : {0.5, 2.0, 5.0}) {
    WorkloadSpec gamma = poisson(40, 200'000);
    gamma.arrivals.kind = ArrivalKind::gamma;
    gamma.arrivals.cv = cv;
    const Gaps found = gaps_of(gamma);
    CHECK(found.mean_s == Approx(0.025).epsilon(0.02 * (1 + cv)));
    CHECK(found.cv == Approx(cv).epsilon(0.03));
  }

  WorkloadSpec bursts = poisson(1, 200'000);
  bursts.arrivals.kind = ArrivalKind::on_off;
  bursts.arrivals.on_rate_per_s = 50;
  bursts.arrivals.off_rate_per_s = 0;
  bursts.arrivals.on = std::chrono::seconds(1);
  bursts.arrivals.off = std::chrono::seconds(4);
  CHECK(offered_rate_per_s(bursts) == Approx(10));
  const Gaps found = gaps_of(bursts);
  CHECK(found.mean_s == Approx(0.1).epsilon(0.05));
  // An interrupted Poisson process renews at arrivals, its gaps are hyper-exponential: cv^2 = 1 + 2 l w / (l
  // + w + s)^2 ... with rates l of arrivals, s of switching off and w of switching on: 1 + 2 l s / (s + w)^2
  // (Kuczura 1973).
  const double squared = 1 + 2 * 50.0 * 1.0 / ((1.0 + 0.25) * (1.0 + 0.25));
  CHECK(found.cv == Approx(std::sqrt(squared)).epsilon(0.05));
}

TEST_CASE("request i is the same whatever is asked before and however many follow", "[property]") {
  WorkloadSpec spec = poisson(10, 50);
  spec.classes.push_back(spec.classes[0]);
  spec.classes[1].name = "batch";
  spec.classes[1].weight = 0.5;
  spec.classes[1].output_tokens = log_normal({50, 40, NAN, NAN, NAN, NAN}).value();
  spec.prediction_sigma = 0.3;
  const auto one = make_source(spec);
  spec.requests = 5000;
  const auto other = make_source(spec);
  for (int i = 0; i < 50; ++i) {
    REQUIRE(one->next_time() == other->next_time());
    one->next_time();
    const Offer a = one->pop(), b = other->pop();
    CHECK(a.request.id == b.request.id);
    CHECK(a.request.arrival == b.request.arrival);
    CHECK(a.request.prompt_tokens == b.request.prompt_tokens);
    CHECK(a.request.slo_class == b.request.slo_class);
    CHECK(a.request.predicted_output_tokens == b.request.predicted_output_tokens);
    CHECK(a.output_tokens == b.output_tokens);
  }
  CHECK(one->next_time() == kNever);
}

TEST_CASE("the rate changes when requests arrive and nothing else about them", "[property]") {
  const auto slow = make_source(poisson(10, 200));
  const auto fast = make_source(at_rate(poisson(10, 200), 40));
  while (slow->next_time() != kNever) {
    fast->next_time();
    const Offer a = slow->pop(), b = fast->pop();
    CHECK(a.request.prompt_tokens == b.request.prompt_tokens);
    CHECK(seconds(a.request.arrival - Time{}) ==
          Approx(4 * seconds(b.request.arrival - Time{})).margin(1e-6));
  }
}

TEST_CASE("classes come in proportion to their weights, with their labels", "[property]") {
  WorkloadSpec spec = poisson(10, 40'000);
  spec.classes[0].name = "chat";
  spec.classes[0].weight = 3;
  spec.classes[0].tenant = "north";
  ClassSpec batch = spec.classes[0];
  batch.name = "batch";
  batch.weight = 1;
  batch.source = "api";
  batch.priority = 2;
  batch.patience = std::chrono::seconds(3);
  spec.classes.push_back(batch);
  const auto source = make_source(spec);
  int batches = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    const bool is_batch = source->names().slo_classes[offer.request.slo_class] == "batch";
    CHECK((offer.request.priority == 2) == is_batch);
    CHECK((offer.patience == std::chrono::seconds(3)) == is_batch);
    CHECK((source->names().sources[offer.request.source] == "api") == is_batch);
    CHECK(source->names().tenants[offer.request.tenant] == "north");
    batches += is_batch;
  }
  CHECK(batches == Approx(10'000).epsilon(0.03));
}

TEST_CASE("a closed loop keeps its clients busy and waits for their think time", "[unit]") {
  WorkloadSpec spec = poisson(1, 7);
  spec.arrivals.kind = ArrivalKind::closed_loop;
  spec.arrivals.concurrency = 3;
  spec.arrivals.think = std::chrono::seconds(2);
  spec.arrivals.ramp = std::chrono::seconds(3);
  const auto source = make_source(spec);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(source->next_time() == Time(std::chrono::seconds(i)));
    CHECK(source->pop().request.id == RequestId(static_cast<std::uint32_t>(i)));
  }
  CHECK(source->next_time() == kNever);
  source->on_end(RequestId(1), Time(std::chrono::seconds(10)), Ending::finished);
  source->on_end(RequestId(0), Time(std::chrono::seconds(11)), Ending::cancelled);
  CHECK(source->next_time() == Time(std::chrono::seconds(12)));
  CHECK(source->pop().request.arrival == Time(std::chrono::seconds(12)));
  CHECK(source->next_time() == Time(std::chrono::seconds(13)));
  for (int i = 0; i < 3; ++i) {
    source->pop();
    source->on_end(RequestId(4), Time(std::chrono::seconds(20)), Ending::finished);
  }
  CHECK(source->counts().offered == 7);
  CHECK(source->next_time() == kNever);
}

TEST_CASE("shared beginnings are equal in a group, distinct between groups, and no longer than the prompt",
          "[property]") {
  WorkloadSpec spec = poisson(10, 4'000);
  spec.classes[0].prefix = {0.5, 3, 48, 16};
  const auto source = make_source(spec);
  std::set<std::uint64_t> first_hashes;
  int sharing = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    const auto hashes = offer.request.prefix_hashes;
    CHECK(static_cast<std::int32_t>(hashes.size()) * 16 <= offer.request.prompt_tokens);
    if (offer.request.hash_block_tokens == 0) {
      CHECK(hashes.empty());
      continue;
    }
    ++sharing;
    CHECK(offer.request.hash_block_tokens == 16);
    if (offer.request.prompt_tokens >= 48) CHECK(hashes.size() == 3);
    if (!hashes.empty()) first_hashes.insert(hashes[0]);
    for (std::size_t b = 1; b < hashes.size(); ++b) CHECK(hashes[b] == hashes[0] + b);
  }
  CHECK(sharing == Approx(2'000).epsilon(0.06));
  CHECK(first_hashes == std::set<std::uint64_t>{0, 3, 6});
}

TEST_CASE("predictions err by the stated factor, and bounds follow their rule", "[property]") {
  WorkloadSpec spec = poisson(10, 20'000);
  spec.classes[0].output_tokens = fixed_length(10'000);
  spec.prediction_sigma = 0.25;
  spec.max_new = MaxNewTokens::exact;
  const auto source = make_source(spec);
  double sum = 0, squares = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    CHECK(offer.request.max_new_tokens == 10'000);
    const double error = std::log(offer.request.predicted_output_tokens / 10'000.0);
    sum += error;
    squares += error * error;
  }
  CHECK(sum / 20'000 == Approx(0).margin(0.006));
  CHECK(std::sqrt(squares / 20'000) == Approx(0.25).epsilon(0.02));
  CHECK(source->warnings() == std::vector<WorkloadWarning>{WorkloadWarning::exact_max_new_tokens});
}

TEST_CASE(
    "answers beyond a fixed bound are cut and counted, over-long requests offered or dropped and counted",
    "[unit]") {
  WorkloadSpec spec = poisson(10, 1000);
  spec.classes[0].output_tokens = fixed_length(20);
  spec.max_new = MaxNewTokens::fixed;
  spec.max_new_tokens = 15;
  spec.tokens_max = 60;
  for (const bool drop : {false, true}) {
    spec.drop_over_long = drop;
    const auto source = make_source(spec);
    std::int64_t long_ones = 0, offered = 0;
    while (source->next_time() != kNever) {
      const Offer offer = source->pop();
      CHECK(offer.output_tokens == 15);
      long_ones += offer.request.prompt_tokens + 20 > 60;
      ++offered;
    }
    CHECK(offered == 1000);
    CHECK(source->counts().outputs_truncated == 1000);
    CHECK(source->counts().over_long > 300);
    CHECK(long_ones == (drop ? 0 : source->counts().over_long));
  }
}

TEST_CASE("lengths resampled from a trace come in its pairs", "[unit]") {
  const ScratchFile file("pairs.csv", "arrival_s,input_tokens,output_tokens\n0,10,1\n1,20,2\n2,30,3\n");
  WorkloadSpec spec = poisson(10, 3'000);
  spec.classes[0].lengths_trace = file.path();
  const auto source = make_source(spec);
  std::array<int, 4> seen{};
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    REQUIRE(offer.request.prompt_tokens == 10 * offer.output_tokens);
    ++seen[static_cast<std::size_t>(offer.output_tokens)];
  }
  for (const std::size_t pair : {1, 2, 3}) CHECK(seen[pair] == Approx(1000).epsilon(0.1));
}

TEST_CASE("the moments of the Azure conversation trace are those that are stated", "[theory]") {
  const auto source = make_source(azure_conv_moments(50, 200'000));
  double prompts = 0, squares = 0, answers = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    prompts += offer.request.prompt_tokens;
    squares += std::pow(offer.request.prompt_tokens, 2);
    answers += offer.output_tokens;
  }
  const double mean_tokens = prompts / 200'000;
  CHECK(mean_tokens == Approx(1154.7).epsilon(0.01));
  CHECK(std::sqrt(squares / 200'000 - mean_tokens * mean_tokens) == Approx(1108.8).epsilon(0.03));
  CHECK(answers / 200'000 == Approx(211.1).epsilon(0.015));
}

TEST_CASE("specifications that make no work are refused", "[unit]") {
  const auto fault = [](const auto& change) {
    WorkloadSpec spec = poisson(1, 10);
    change(spec);
    return error_of([&] { make_source(spec); });
  };
  CHECK(fault([](WorkloadSpec& s) {
          s.arrivals.rate_per_s = 0;
        }).find("workload: rate_per_s: expected a rate above 0") == 0);
  CHECK(fault([](WorkloadSpec& s) { s.arrivals.rate_per_s = NAN; }).find("workload: rate_per_s") == 0);
  CHECK(fault([](WorkloadSpec& s) {
          s.classes.clear();
        }).find("workload: classes: expected at least one class") == 0);
  CHECK(fault([](WorkloadSpec& s) {
          s.classes[0].weight = 0;
        }).find("workload: classes: expected a positive sum") == 0);
  CHECK(fault([](WorkloadSpec& s) {
          s.classes[0].prompt_tokens = fixed_length(0);
        }).find("workload: class \"default\"") == 0);
  CHECK(fault([](WorkloadSpec& s) { s.arrivals.kind = ArrivalKind::on_off; }).find("workload: on_off") == 0);
  CHECK(fault([](WorkloadSpec& s) {
          s.arrivals.kind = ArrivalKind::trace;
        }).find("workload: trace: expected a path") == 0);
  CHECK(fault([](WorkloadSpec& s) {
          s.tokens_max = 2;
          s.drop_over_long = true;
        }) == "no error");
}

#include <algorithm>
#include <map>

#include "sim/metrics/collector.hpp"
#include "sim/metrics/quantiles.hpp"
#include "sim/metrics/step_log.hpp"
#include "tests/catch.hpp"
#include "tests/metrics/fake_run.hpp"
#include "tests/metrics/twin.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

struct Records final : RequestSink {
  std::map<std::uint32_t, RequestRecord> by_id;
  void write(const RequestRecord& record) override {
    REQUIRE(by_id.emplace(static_cast<std::uint32_t>(record.id), record).second);
  }
};

FakeOptions drawn_options(std::uint64_t seed) {
  Draw draw(seed * 31 + 7);
  FakeOptions options;
  options.turns = draw.between(1, 120);
  options.merge = draw.chance(0.8);
  options.classes = static_cast<int>(draw.between(1, 3));
  options.preempt = draw.chance(0.5) ? 0.0 : 0.15;
  options.starve = draw.chance(0.5) ? 0.0 : 0.2;
  options.cancel = draw.chance(0.5) ? 0.0 : 0.05;
  options.preempt_in_flight = draw.chance(0.5) ? 0.0 : 0.2;
  options.batch_ends = true;
  return options;
}

void require_same(const RequestRecord& a, const RequestRecord& b) {
  CHECK(static_cast<int>(a.outcome) == static_cast<int>(b.outcome));
  CHECK(a.arrival_ps == b.arrival_ps);
  CHECK(a.end_ps == b.end_ps);
  if (a.outcome == Outcome::refused) return;
  CHECK(a.prompt_tokens == b.prompt_tokens);
  CHECK(a.output_tokens == b.output_tokens);
  CHECK(a.cached_tokens == b.cached_tokens);
  CHECK(a.preemptions == b.preemptions);
  for (std::size_t m = 0; m < kRequestMetrics; ++m) {
    INFO(metric_name(static_cast<Metric>(m)));
    CHECK(a.value_ps[m] == b.value_ps[m]);
  }
}

void require_gaps(const Histogram& histogram, std::vector<std::int64_t> gaps) {
  REQUIRE(histogram.count() == static_cast<std::int64_t>(gaps.size()));
  if (gaps.empty()) return;
  std::sort(gaps.begin(), gaps.end());
  Wide sum = 0;
  for (const std::int64_t gap : gaps) sum += gap;
  CHECK(histogram.mean_ps() == to_double(sum) / static_cast<double>(gaps.size()));
  CHECK(histogram.max_ps() == gaps.back());
  for (const double q : {0.0, 0.3, 0.5, 0.9, 0.99, 1.0})
    CHECK(histogram.quantile_ps(q) == Approx(sorted_quantile(gaps, q)).epsilon(kHistogramError).margin(0.5));
}

}  // namespace

TEST_CASE("the collector agrees with a plain loop over tokens on any run", "[property]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    const Delivery delivery = static_cast<Delivery>(seed % 3);
    Records records;
    CollectorOptions options;
    options.delivery = delivery;
    options.sink = &records;
    options.exact_requests_max = seed % 5 == 0 ? 10 : 1000;
    Collector collector(options);
    Twin twin(delivery);
    ObserverList both({&collector, &twin});
    FakeRun run(seed, drawn_options(seed));
    const Time end = run.run(both) + Duration(seed % 2 == 0 ? 0 : 1000);
    collector.finish_run(end);
    twin.finish_run(end);

    REQUIRE(records.by_id.size() == twin.records.size());
    for (const auto& [id, record] : twin.records) {
      INFO("request " << id);
      require_same(records.by_id.at(id), record);
    }
    require_gaps(collector.merged(Metric::gap, {}), twin.gaps);
    for (const auto& [slo_class, gaps] : twin.class_gaps) {
      std::vector<char> selected;
      for (const GroupCell& cell : collector.cells()) selected.push_back(cell.slo_class == slo_class ? 1 : 0);
      require_gaps(collector.merged(Metric::gap, selected), gaps);
    }
    const RequestTotals totals = collector.totals();
    CHECK(totals.recomputed_tokens == twin.recomputed);
    CHECK(totals.offered == totals.finished + totals.refused() + totals.cancelled + totals.unfinished);
    CHECK(totals.offered == static_cast<std::int64_t>(twin.records.size()));
    // Little's law as an identity: the integral of the number in the system is the sum of lives.
    CHECK(collector.state().in_system_ps == collector.state().life_ps);
    CHECK(collector.state().life_ps == twin.life_sum);
  }
}

TEST_CASE("a finished request's time is queue, prefill, decode, preempted and stalled, to the picosecond",
          "[property]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Records records;
    CollectorOptions options;
    options.sink = &records;
    Collector collector(options);
    FakeRun run(seed, drawn_options(seed));
    collector.finish_run(run.run(collector));
    for (const auto& [id, record] : records.by_id) {
      if (record.outcome == Outcome::refused) continue;
      std::int64_t sum = 0;
      for (const Metric part : {Metric::queue_time, Metric::prefill_time, Metric::decode_time,
                                Metric::preempted_time, Metric::stalled_time}) {
        CHECK(record.value_ps[index(part)] >= 0);
        sum += record.value_ps[index(part)];
      }
      CHECK(sum == record.end_ps - record.arrival_ps);
    }
  }
}

TEST_CASE("windows taken together and step by step give the same figures", "[property]") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    Records one_records, two_records;
    CollectorOptions one_options, two_options;
    one_options.sink = &one_records;
    two_options.sink = &two_records;
    Collector one(one_options), two(two_options);
    FakeOptions options = drawn_options(seed);
    options.merge = true;
    one.finish_run(FakeRun(seed, options).run(one));
    options.merge = false;
    two.finish_run(FakeRun(seed, options).run(two));
    REQUIRE(one_records.by_id.size() == two_records.by_id.size());
    for (const auto& [id, record] : one_records.by_id) require_same(record, two_records.by_id.at(id));
    CHECK(one.work() == two.work());
    CHECK(one.limits().time_ps == two.limits().time_ps);
    CHECK(one.limits().steps == two.limits().steps);
    CHECK(one.state().kv_held_ps == two.state().kv_held_ps);
    const Histogram a = one.merged(Metric::gap, {});
    const Histogram b = two.merged(Metric::gap, {});
    CHECK(a.count() == b.count());
    CHECK(a.mean_ps() == b.mean_ps());
    for (const double q : {0.1, 0.5, 0.9, 0.99}) CHECK(a.quantile_ps(q) == b.quantile_ps(q));
    REQUIRE(one.series().buckets().size() == two.series().buckets().size());
    for (std::size_t s = 0; s < one.series().buckets().size(); ++s) {
      CHECK(one.series().buckets()[s].emitted_tokens == two.series().buckets()[s].emitted_tokens);
      CHECK(one.series().buckets()[s].busy_ps == two.series().buckets()[s].busy_ps);
    }
  }
}

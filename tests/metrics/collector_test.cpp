#include "sim/metrics/collector.hpp"

#include "sim/metrics/report.hpp"
#include "tests/catch.hpp"
#include "tests/metrics/hand_run.hpp"

using namespace foretoken;
using foretoken::test::HandRun;

namespace {

double figure(const Report& report, Metric metric, Statistic statistic = Statistic::mean) {
  return report.whole.metrics[index(metric)][statistic];
}

}  // namespace

TEST_CASE("prompts of 50, 100 and 150 in one static batch compute 450 tokens for 300", "[golden]") {
  Collector collector;
  HandRun run{collector};
  for (std::uint32_t h = 0; h < 3; ++h) run.arrive(h, 0, 50 * static_cast<std::int32_t>(h + 1), 1);
  for (std::uint32_t h = 0; h < 3; ++h) run.admit(h, 50 * static_cast<std::int32_t>(h + 1));
  run.step({run.chunk(0, 50), run.chunk(1, 100), run.chunk(2, 150)}, 0, 1000, 150);
  for (std::uint32_t h = 0; h < 3; ++h) run.token(h, 1);
  for (std::uint32_t h = 0; h < 3; ++h) run.end(h, 1);
  collector.finish_run(run.at(run.now));
  CHECK(collector.work().new_tokens == 300);
  CHECK(collector.work().computed_tokens == 450);
  CHECK(collector.work().padding_tokens == 150);
  CHECK(collector.work().attention_pairs == 50 * 51 / 2 + 100 * 101 / 2 + 150 * 151 / 2);
}

TEST_CASE("one request's life by hand", "[golden]") {
  Collector collector;
  HandRun run{collector};
  run.arrive(0, 100, 10, 4);
  run.now = 150;
  run.prefill(0, 10, 1000);   // first token at 1150
  run.step({}, 1, 50, 0, 2);  // tokens at 1200 and 1250
  run.arrive(1, 1250, 20, 1);
  run.admit(1, 20);
  run.step({run.chunk(1, 20)}, 0, 400);  // a prompt alone: the decode stalls until 1650
  run.token(1, 1);
  run.end(1, 1);
  run.step({}, 1, 60);  // the last token at 1710
  run.end(0, 4);
  collector.finish_run(run.at(run.now));
  const RequestTable& table = collector.table();
  const auto value = [&](Metric metric) { return table.value_ps(metric, 1); };
  CHECK(value(Metric::ttft) == 1050);
  CHECK(value(Metric::tpot) == (1710 - 1150 + 1) / 3);
  CHECK(value(Metric::ntpot) == (1610 + 2) / 4);
  CHECK(value(Metric::e2e) == 1610);
  CHECK(value(Metric::queue_time) == 50);
  CHECK(value(Metric::prefill_time) == 1000);
  CHECK(value(Metric::decode_time) == 160);
  CHECK(value(Metric::stalled_time) == 400);
  CHECK(value(Metric::stall_max) == 460);
  CHECK(value(Metric::preempted_time) == 0);
  // The request of one token: no tpot, no stall.
  CHECK(table.value_ps(Metric::tpot, 0) == -1);
  CHECK(table.value_ps(Metric::stall_max, 0) == -1);
  CHECK(collector.merged(Metric::gap, {}).count() == 3);
}

TEST_CASE("preempted tokens are computed twice, delivered once and booked as preempted time", "[golden]") {
  Collector collector;
  HandRun run{collector};
  run.arrive(0, 0, 10, 4);
  run.prefill(0, 10, 100);
  run.step({}, 1, 10);  // two tokens, eleven computed
  collector.on_preempt({static_cast<Slot>(0u), run.handle(0), 11, false}, 2, run.at(run.now));
  run.now += 500;
  run.admit(0, 12);
  run.step({run.chunk(0, 12)}, 0, 120);
  run.token(0, 3);
  run.step({}, 1, 10);
  run.end(0, 4);
  collector.finish_run(run.at(run.now));
  const RequestTotals totals = collector.totals();
  CHECK(totals.preemptions == 1);
  CHECK(totals.recomputed_tokens == 11);
  CHECK(totals.delivered_tokens == 4);
  CHECK(collector.table().value_ps(Metric::preempted_time, 0) == 500);
  CHECK(collector.table().value_ps(Metric::prefill_time, 0) == 220);
  CHECK(collector.table().value_ps(Metric::stall_max, 0) == 620);
}

TEST_CASE("tpot hides a stall that stall_max shows") {
  Collector collector;
  HandRun run{collector};
  const std::int64_t step = 39'000'000'000;      // 39 ms
  const std::int64_t pause = 4'000'000'000'000;  // 4 s
  run.arrive(0, 0, 10, 401);
  run.prefill(0, 10, step);
  run.step({}, 1, step, 0, 200);
  run.now += pause;
  run.step({}, 1, step, 0, 200);
  run.end(0, 401);
  collector.finish_run(run.at(run.now));
  CHECK(collector.table().value_ps(Metric::tpot, 0) == step + pause / 400);
  CHECK(collector.table().value_ps(Metric::stall_max, 0) == step + pause);
  CHECK(collector.merged(Metric::gap, {}).quantile_ps(0.5) == Approx(39e9).epsilon(kHistogramError));
}

TEST_CASE("pooled gaps weigh long answers, tpot weighs requests") {
  Collector collector;
  HandRun run{collector};
  run.arrive(0, 0, 10, 1000);
  run.prefill(0, 10, 100);
  run.step({}, 1, 100, 0, 999);
  run.end(0, 1000);
  run.arrive(1, run.now, 10, 2);
  run.prefill(1, 10, 100);
  run.step({}, 1, 10000);
  run.end(1, 2);
  collector.finish_run(run.at(run.now));
  const Report report = make_report(collector, {});
  CHECK(figure(report, Metric::gap) == Approx((999 * 100 + 10000) / 1000.0));
  CHECK(figure(report, Metric::tpot) == Approx((100 + 10000) / 2.0));
  CHECK(figure(report, Metric::gap, Statistic::p95) == Approx(100).epsilon(kHistogramError));
}

TEST_CASE("ttft counts from the intended arrival and at delivery") {
  for (const Delivery delivery : {Delivery::streamed, Delivery::request_end, Delivery::batch_end}) {
    CollectorOptions options;
    options.delivery = delivery;
    Collector collector(options);
    HandRun run{collector};
    run.now = 300;
    run.arrive(0, 100, 10, 2);  // seen late
    run.prefill(0, 10, 1000);
    run.step({}, 1, 50);
    run.end(0, 2);
    run.now += 700;
    collector.on_batch_end(run.at(run.now));
    collector.finish_run(run.at(run.now));
    const std::int64_t expected = delivery == Delivery::streamed      ? 1200
                                  : delivery == Delivery::request_end ? 1250
                                                                      : 1950;
    CHECK(collector.table().value_ps(Metric::ttft, 0) == expected);
    CHECK(collector.table().value_ps(Metric::e2e, 0) == (delivery == Delivery::batch_end ? 1950 : 1250));
    CHECK(collector.table().value_ps(Metric::tpot, 0) == 50);
    CHECK(collector.state().in_system_ps == collector.state().life_ps);
  }
}

TEST_CASE("goodput is of the offered: refused, cancelled and unfinished requests are not good") {
  CollectorOptions options;
  options.slos = {parse_slo("ttft.p99<1us"), parse_slo("goodput>0.99")};
  Collector collector(options);
  HandRun run{collector};
  run.arrive(0, 0, 10, 1);  // good
  run.prefill(0, 10, 100);
  run.end(0, 1);
  run.arrive(1, run.now, 10, 1);  // late
  run.prefill(1, 10, 2'000'000);
  run.end(1, 1);
  Offer refused;
  refused.request.arrival = run.at(run.now);
  collector.on_reject(refused, Refusal::never_fits, run.at(run.now));
  run.arrive(2, run.now, 10, 5);
  run.end(2, 0, Ending::cancelled);
  run.arrive(2, run.now, 10, 5);  // the end finds it waiting
  collector.finish_run(run.at(run.now + 10));
  const RequestTotals totals = collector.totals();
  CHECK(totals.offered == 5);
  CHECK(totals.finished == 2);
  CHECK(totals.good == 1);
  CHECK(totals.refused_memory == 1);
  CHECK(totals.cancelled == 1);
  CHECK(totals.unfinished == 1);
  const Report report = make_report(collector, {});
  CHECK(*report.whole.goodput == Approx(0.2));
  CHECK(report.slos[1].value == Approx(0.2));
  CHECK_FALSE(report.all_pass());
}

TEST_CASE("an embedding and a classification are excluded from tpot and counted") {
  Collector collector;
  HandRun run{collector};
  run.arrive(0, 0, 10, 0);
  run.admit(0, 10);
  Chunk chunk = run.chunk(0, 10);
  chunk.sampled = false;
  run.step({chunk}, 0, 100);
  run.end(0, 0);
  run.arrive(0, run.now, 10, 1);
  run.prefill(0, 10, 100);
  run.end(0, 1);
  collector.finish_run(run.at(run.now));
  const Report report = make_report(collector, {});
  CHECK(report.whole.metrics[index(Metric::tpot)].count == 0);
  CHECK(report.whole.metrics[index(Metric::tpot)].excluded == 2);
  CHECK(report.whole.metrics[index(Metric::ttft)].count == 1);
  CHECK(report.whole.metrics[index(Metric::ttft)].excluded == 1);
  CHECK(report.whole.metrics[index(Metric::e2e)].count == 2);
}

TEST_CASE("beyond exact percentiles the figures agree within the histogram's bound") {
  CollectorOptions exact_options, rough_options;
  rough_options.exact_requests_max = 5;
  Collector exact(exact_options), rough(rough_options);
  for (Collector* collector : {&exact, &rough}) {
    HandRun run{*collector};
    for (int n = 0; n < 200; ++n) {
      run.arrive(0, run.now, 10, 2, static_cast<std::uint16_t>(n % 2));
      run.prefill(0, 10, 1000 + 37 * n);
      run.step({}, 1, 100 + n);
      run.end(0, 2);
    }
    collector->finish_run(run.at(run.now));
  }
  CHECK(exact.exact());
  CHECK_FALSE(rough.exact());
  const Report a = make_report(exact, {});
  const Report b = make_report(rough, {});
  REQUIRE(b.classes.size() == 2);
  for (std::size_t m = 0; m < kRequestMetrics; ++m)
    for (std::size_t s = 0; s < kStatistics; ++s) {
      CHECK(b.whole.metrics[m].value_ps[s] ==
            Approx(a.whole.metrics[m].value_ps[s]).epsilon(0.005).margin(1));
      CHECK(b.classes[1].metrics[m].value_ps[s] ==
            Approx(a.classes[1].metrics[m].value_ps[s]).epsilon(0.005).margin(1));
    }
  CHECK(b.warnings.size() > 0);
}

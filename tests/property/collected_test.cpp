// The collector on real runs: what policies and depth 1 really do, which no invented run foresees.
#include <vector>

#include "sim/metrics/collector.hpp"
#include "tests/catch.hpp"
#include "tests/support/stage.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

struct Records final : RequestSink {
  std::vector<RequestRecord> all;
  void write(const RequestRecord& record) override { all.push_back(record); }
};

std::vector<RequestRecord> collected(const Setup& setup, bool skip_ahead) {
  Setup chosen = setup;
  chosen.engine.skip_ahead = skip_ahead;
  Records records;
  CollectorOptions options;
  options.delivery = setup.policy.delivery;
  options.block_tokens = setup.policy.block_tokens;
  options.sink = &records;
  Collector collector(options);
  Stage stage(chosen);
  const RunResult run = stage.run(stage.executor, collector);
  collector.finish_run(run.end);
  const RequestTotals totals = collector.totals();
  LAW(run.drained && totals.unfinished == 0, totals.unfinished);
  LAW(totals.offered == totals.finished + totals.cancelled + totals.refused(), totals.offered);
  LAW(static_cast<std::int64_t>(records.all.size()) == totals.offered, totals.offered);
  return records.all;
}

}  // namespace

TEST_CASE("drawn runs are collected whole, and alike when steps are skipped", "[property]") {
  for_each_seed(500, [](Draw& draw) {
    const Setup setup = draw_setup(draw);
    const std::vector<RequestRecord> a = collected(setup, true);
    const std::vector<RequestRecord> b = collected(setup, false);
    LAW(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      LAW(a[i].id == b[i].id && a[i].end_ps == b[i].end_ps, i);
      LAW(a[i].value_ps == b[i].value_ps, i, static_cast<std::int64_t>(a[i].id));
      LAW(a[i].preemptions == b[i].preemptions && a[i].output_tokens == b[i].output_tokens, i);
    }
  });
}

#include "sim/metrics/report.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "sim/base/files.hpp"
#include "sim/metrics/request_writer.hpp"
#include "tests/catch.hpp"
#include "tests/metrics/fake_run.hpp"
#include "tests/metrics/hand_run.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Matchers::Contains;

namespace {

Report drawn_report(std::uint64_t seed, const ReportContext& context, RequestSink* sink = nullptr) {
  CollectorOptions options;
  options.slos = {parse_slo("ttft.p50<1us"), parse_slo("goodput>0.5")};
  options.sink = sink;
  Collector collector(options);
  FakeOptions run;
  run.classes = 3;
  run.turns = 400;
  collector.finish_run(FakeRun(seed, run).run(collector));
  return make_report(collector, context);
}

bool warns(const Report& report, ReportWarning kind) {
  return std::any_of(report.warnings.begin(), report.warnings.end(),
                     [&](const WarningText& warning) { return warning.kind == kind; });
}

}  // namespace

TEST_CASE("the same run gives the same JSON bytes, and no group loses a request") {
  ReportContext context;
  context.names.classes = {"realtime", "chat", "batch"};
  context.seed = 18446744073709551615u;
  const Report report = drawn_report(5, context);
  CHECK(report_json(report, context).dump(2) == report_json(drawn_report(5, context), context).dump(2));
  const Json json = Json::parse(report_json(report, context).dump(), "report");
  CHECK(json.find("schema_version")->as_int64() == kReportSchemaVersion);
  CHECK(json.find("seed")->as_uint64() == context.seed);
  std::int64_t offered = 0;
  for (const GroupReport& group : report.classes) offered += group.totals.offered;
  CHECK(offered == report.whole.totals.offered);
  CHECK(json.find("result")->find("classes")->as_array().size() == 3);
}

TEST_CASE("tables fit their width, and colour comes only when asked for") {
  ReportContext context;
  context.names.classes = {"a class with a very long name that no table has room for", "chat", "batch"};
  context.source_line = std::string(300, 'x');
  const Report report = drawn_report(6, context);
  for (const std::int32_t columns : {40, 60, 80, 100, 500}) {
    TableOptions options;
    options.columns = columns;
    std::istringstream lines(report_table(report, context, options));
    for (std::string line; std::getline(lines, line);)
      CHECK(static_cast<std::int32_t>(line.size()) <= std::min(columns, 100));
  }
  TableOptions options;
  const std::string plain = report_table(report, context, options);
  CHECK(plain.find('\033') == std::string::npos);
  CHECK(plain.find("THRESHOLDS") < plain.find("LATENCY"));
  options.color = true;
  CHECK(report_table(report, context, options).find('\033') != std::string::npos);
  CHECK_THAT(report_markdown(report, context), Contains("| ttft |"));
  CHECK_THAT(report_csv(report), Contains("class,chat,ttft,ms,"));
}

TEST_CASE("an empty run makes a report") {
  Collector collector;
  collector.finish_run(Time{});
  const Report report = make_report(collector, {});
  CHECK_FALSE(report.whole.goodput.has_value());
  CHECK_FALSE(report_table(report, {}, {}).empty());
  CHECK_FALSE(report_json(report, {}).dump().empty());
}

TEST_CASE("a growing queue is not called steady") {
  Collector collector;
  HandRun run{collector};
  // A request a nanosecond arrives, one in two nanoseconds is served.
  std::uint32_t served = 0;
  for (std::uint32_t n = 0; n < 600; ++n) {
    run.arrive(n, 1'000'000 * static_cast<std::int64_t>(n), 10, 1);
    if (n % 2 == 1) continue;
    run.prefill(served, 10, 900'000);
    run.end(served, 1);
    ++served;
  }
  collector.finish_run(run.at(run.now));
  const Report report = make_report(collector, {});
  CHECK_FALSE(report.steady.is_stationary);
  CHECK(*report.steady.served_share == Approx(0.5).epsilon(0.02));
  CHECK(warns(report, ReportWarning::not_stationary));
  CHECK(warns(report, ReportWarning::few_samples));
  CHECK(warns(report, ReportWarning::unfinished_requests));
}

TEST_CASE("the steady window leaves out the ramp and the drain") {
  Collector collector;
  HandRun run{collector};
  for (std::uint32_t n = 0; n < 1000; ++n) {
    run.arrive(0, std::max(run.now, 1'000'000 * static_cast<std::int64_t>(n)), 10, 1);
    run.prefill(0, 10, n < 100 ? 1000 : 500'000);
    run.end(0, 1);
  }
  run.now += 1'000'000'000'000;  // a long tail without work
  collector.finish_run(run.at(run.now));
  const Report report = make_report(collector, {});
  CHECK(report.whole.finished_per_s == Approx(1000 / 1.001).epsilon(0.001));
  CHECK(report.steady.finished_per_s == Approx(1e6).epsilon(0.01));
  CHECK(report.steady.metrics[index(Metric::ttft)][Statistic::mean] == Approx(500'000));
}

TEST_CASE("replicates are merged as means with intervals, counts as sums") {
  ReportContext context;
  context.names.classes = {"realtime", "chat", "batch"};
  const std::vector<Report> reports{drawn_report(1, context), drawn_report(2, context),
                                    drawn_report(3, context)};
  const Report merged = merge_replicates(reports, ReportContext{});
  CHECK(merged.replicates == 3);
  CHECK(merged.whole.totals.offered ==
        reports[0].whole.totals.offered + reports[1].whole.totals.offered + reports[2].whole.totals.offered);
  double mean = 0;
  for (const Report& report : reports) mean += report.whole.metrics[index(Metric::e2e)][Statistic::mean] / 3;
  CHECK(merged.whole.metrics[index(Metric::e2e)][Statistic::mean] == Approx(mean));
  CHECK(merged.whole.metrics[index(Metric::e2e)].half_width_ps[0] > 0);
  CHECK(merged.slos[0].has_interval);
  double greatest = 0;
  for (const Report& report : reports)
    greatest = std::max(greatest, report.whole.metrics[index(Metric::e2e)][Statistic::max]);
  CHECK(merged.whole.metrics[index(Metric::e2e)][Statistic::max] == greatest);
  // So for thresholds on a maximum, which have no interval.
  std::vector<Report> judged(2);
  for (std::size_t i = 0; i < judged.size(); ++i) {
    SloResult result;
    result.slo = parse_slo("ttft.max<1s");
    result.has_value = true;
    result.value = i == 0 ? 0.1e12 : 1.5e12;
    judged[i].slos.push_back(result);
  }
  const Report worst = merge_replicates(judged, ReportContext{});
  CHECK((worst.slos[0].value == 1.5e12 && !worst.slos[0].pass && !worst.slos[0].has_interval));
}

TEST_CASE("per-request output has a line for every offered request") {
  const std::string path = (std::filesystem::temp_directory_path() / "foretoken_requests.csv").string();
  for (const RequestFormat format : {RequestFormat::csv, RequestFormat::jsonl}) {
    GroupNames names;
    names.classes = {"with,comma", "chat", "batch"};
    RequestWriter writer(path, format, names);
    const Report report = drawn_report(9, {}, &writer);
    CHECK_FALSE(std::filesystem::exists(path));
    writer.commit();
    const std::string text = read_file(path);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    CHECK(lines == report.whole.totals.offered + (format == RequestFormat::csv ? 1 : 0));
    std::filesystem::remove(path);
  }
}

TEST_CASE("arrivals on a coarse clock are noticed, a batch that comes at once is not blamed") {
  for (const bool all_at_once : {true, false}) {
    Collector collector;
    HandRun run{collector};
    for (std::uint32_t n = 0; n < 100; ++n)
      run.arrive(n, all_at_once ? 0 : static_cast<std::int64_t>(n / 10) * 1000, 1, 1);
    collector.finish_run(run.at(run.now));
    CHECK(warns(make_report(collector, {}), ReportWarning::tied_arrivals) == !all_at_once);
  }
}

TEST_CASE("every metric is defined, with what other tools call it") {
  const std::string text = metric_definitions();
  for (std::size_t m = 0; m < kMetrics; ++m) {
    CHECK_THAT(text, Contains("  " + std::string(metric_name(static_cast<Metric>(m))) + "\n"));
    CHECK(find_metric(metric_name(static_cast<Metric>(m))) == static_cast<Metric>(m));
  }
  CHECK_THAT(text, Contains("ITL"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 110);
}

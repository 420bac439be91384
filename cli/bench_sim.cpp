#include "cli/bench_sim.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <vector>

#include "cli/bench_command.hpp"
#include "cli/output.hpp"
#include "cli/text_table.hpp"
#include "sim/base/error.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"
#include "sim/simulation.hpp"

namespace foretoken {
namespace {

/// Requests of the runs that look for the capacity and count preemptions.
constexpr std::int64_t kSearchRequests = 20'000;

double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Counts requests that were preempted.
class PreemptedCounter final : public RequestSink {
 public:
  void write(const RequestRecord& record) override {
    ++requests_;
    preempted_ += record.preemptions > 0 ? 1 : 0;
  }
  double share() const {
    return requests_ == 0 ? 0 : static_cast<double>(preempted_) / static_cast<double>(requests_);
  }

 private:
  std::int64_t requests_ = 0;
  std::int64_t preempted_ = 0;
};

/// 256 sequences that only decode, for as long as the context allows.
Scenario decode_scenario(const BenchSimOptions& options) {
  Scenario scenario = bench_sim_scenario(options);
  constexpr std::int32_t kAnswer = 30'000;
  scenario.capacity.kv_blocks = 1'000'000;
  WorkloadSpec& workload = scenario.workload;
  workload.requests = 256;
  workload.arrivals.rate_per_s = 1e6;
  workload.classes.front().prompt_tokens = fixed_length(8);
  workload.classes.front().output_tokens = fixed_length(kAnswer);
  return scenario;
}

double decode_step_ns(const BenchSimOptions& options) {
  const Scenario scenario = decode_scenario(options);
  SimulateOptions one_by_one;
  one_by_one.skip_ahead = false;
  std::vector<double> values;
  for (std::int64_t i = 0; i < options.repeats; ++i) {
    const double begin = cpu_seconds();
    const Simulation run = simulate(scenario, one_by_one);
    values.push_back(1e9 * (cpu_seconds() - begin) / static_cast<double>(run.report.steps));
  }
  return median(values);
}

}  // namespace

Scenario bench_sim_scenario(const BenchSimOptions& options) {
  const Json document = Json::object(
      {{"name", "bench-sim"},
       {"seed", static_cast<std::int64_t>(options.seed)},
       {"cost", Json::object(
                    {{"affine",
                      Json::object({{"step_us", 6000.0}, {"token_us", 20.0}, {"context_token_us", 0.04}})}})},
       {"engine", Json::object({{"preset", options.preset},
                                {"max_model_len", 32768},
                                {"num_gpu_blocks_override", 10000},
                                {"sched", Json::object({{"sequences_max", 256}, {"prefix_cache", false}})}})},
       {"workload", Json::object({{"arrivals", Json::object({{"kind", "poisson"}, {"rate_per_s", 10.0}})},
                                  {"prompt_tokens", 1},
                                  {"output_tokens", 1}})},
       {"metrics", Json::object({{"bootstrap_resamples", 0}})}});
  Scenario scenario = read_scenario(document, "bench sim", "");
  Policy& policy = scenario.engine.settings.policy;
  if (policy.chunked) policy.batch_tokens_max = 2048;
  scenario.workload = azure_conv_moments(10.0, options.requests, options.seed);
  return scenario;
}

BenchSimResult bench_sim(const BenchSimOptions& options,
                         const std::function<void(std::string_view)>& progress) {
  const auto say = [&](const std::string& text) {
    if (progress) progress(text);
  };
  BenchSimResult result;
  Scenario scenario = bench_sim_scenario(options);
  scenario.workload.requests = kSearchRequests;
  say("searching for the capacity");
  result.capacity_per_s = find_capacity(scenario).rate_per_s;
  result.rate_per_s = options.rate_share * result.capacity_per_s;
  scenario = at_rate(scenario, result.rate_per_s);
  PreemptedCounter counter;
  SimulateOptions counted;
  counted.sink = &counter;
  static_cast<void>(simulate(scenario, counted));
  result.preempted_share = counter.share();

  scenario.workload.requests = options.requests;
  std::vector<double> requests_per_second;
  std::vector<double> steps_per_second;
  for (std::int64_t i = 0; i < options.repeats; ++i) {
    say("timed run " + std::to_string(i + 1) + " of " + std::to_string(options.repeats));
    const double begin = cpu_seconds();
    const Simulation run = simulate(scenario);
    const double spent = cpu_seconds() - begin;
    const auto finished = static_cast<double>(run.report.whole.totals.finished);
    const auto steps = static_cast<double>(run.report.steps);
    requests_per_second.push_back(finished / spent);
    steps_per_second.push_back(steps / spent);
    result.mean_batch = static_cast<double>(run.report.work.sampled_rows) / steps;
    result.steps_per_request = steps / finished;
    result.preemptions_per_request = static_cast<double>(run.report.whole.totals.preemptions) / finished;
  }
  result.requests_per_cpu_second = median(requests_per_second);
  result.steps_per_cpu_second = median(steps_per_second);
  say("single decode steps of 256 sequences");
  result.ns_per_decode_step_at_batch_256 = decode_step_ns(options);
  result.peak_rss_bytes = peak_rss_bytes();
  return result;
}

Json bench_sim_json(const BenchSimOptions& options, const BenchSimResult& result) {
  return Json::object({{"schema_version", 1},
                       {"tool_version", build_info().version},
                       {"command", "bench sim"},
                       {"preset", options.preset},
                       {"requests", options.requests},
                       {"repeats", options.repeats},
                       {"seed", static_cast<std::int64_t>(options.seed)},
                       {"rate_share", options.rate_share},
                       {"capacity_per_s", result.capacity_per_s},
                       {"rate_per_s", result.rate_per_s},
                       {"requests_per_cpu_second", result.requests_per_cpu_second},
                       {"steps_per_cpu_second", result.steps_per_cpu_second},
                       {"mean_batch", result.mean_batch},
                       {"steps_per_request", result.steps_per_request},
                       {"preempted_share", result.preempted_share},
                       {"preemptions_per_request", result.preemptions_per_request},
                       {"ns_per_decode_step_at_batch_256", result.ns_per_decode_step_at_batch_256},
                       {"peak_rss_bytes", result.peak_rss_bytes}});
}

namespace {

std::string bench_sim_text(const BenchSimResult& result, std::string_view form) {
  TextTable table({{"figure"}, {"value", true}, {"unit"}});
  table.add(
      {"requests", with_commas(static_cast<std::int64_t>(result.requests_per_cpu_second)), "per CPU second"});
  table.add({"steps", with_commas(static_cast<std::int64_t>(result.steps_per_cpu_second)), "per CPU second"});
  table.add(
      {"decode step at batch 256", short_number(result.ns_per_decode_step_at_batch_256), "ns, one by one"});
  table.add({"mean batch", short_number(result.mean_batch), "tokens emitted per step"});
  table.add({"steps per request", short_number(result.steps_per_request), ""});
  table.add({"preempted", short_number(100 * result.preempted_share), "% of the requests"});
  table.add({"arrivals", short_number(result.rate_per_s),
             "req/s of a capacity of " + short_number(result.capacity_per_s)});
  table.add({"peak memory", short_number(static_cast<double>(result.peak_rss_bytes) / 1048576.0), "MiB"});
  return table.render(form, table_columns());
}

struct Options {
  CommonOptions common;
  OutputOptions output;
  BenchSimOptions bench;
  std::int64_t seed = 1;
};

}  // namespace

CommandSpec bench_sim_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{
      "sim",
      "Requests and steps that the simulator does per CPU second, on one core",
      {{"foretoken bench sim --requests 20000 --repeats 1"},
       {"foretoken bench sim --json", true},
       {"foretoken bench sim --preset sarathi", true}},
      {{"--requests", &options->bench.requests, "COUNT", "Requests of a timed run", false, kCounts},
       {"--repeats", &options->bench.repeats, "COUNT", "Timed runs; the median counts", false, kRuns},
       {"--preset", &options->bench.preset, "NAME", "Engine preset"},
       {"--rate-share",
        &options->bench.rate_share,
        "SHARE",
        "Arrival rate over capacity",
        false,
        {0, 2, true}},
       {"--seed", &options->seed, "NUMBER", "Seed", false, kSeeds}},
      {},
      {}};
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] {
    check_output(options->output, "table|md|csv|json");
    BenchSimOptions& bench = options->bench;
    bench.seed = static_cast<std::uint64_t>(options->seed);
    Log log(options->common);
    const BenchSimResult result = bench_sim(bench, [&](std::string_view text) { log.progress(text); });
    deliver(options->output, [&](std::string_view form) {
      return form == "json" ? bench_sim_json(bench, result).dump(2) + "\n" : bench_sim_text(result, form);
    });
    return kExitOk;
  };
  return command;
}

}  // namespace foretoken

#include "sim/simulation.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "models/shape.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"
#include "sim/core/engine.hpp"
#include "sim/fleet/driver.hpp"
#include "sim/metrics/collector.hpp"
#include "sim/metrics/step_log.hpp"
#include "sim/sim_executor.hpp"

namespace foretoken {
namespace {

GroupNames group_names(const WorkloadNames& names) {
  return {names.slo_classes, names.tenants, names.sources};
}

/// Keeps the caller's names up to date, which a trace may add to with every request.
class NamingSink final : public RequestSink {
 public:
  NamingSink(RequestSink& inner, const WorkloadSource& source, GroupNames& names)
      : inner_(inner), source_(source), names_(names) {}
  void write(const RequestRecord& record) override {
    const WorkloadNames& known = source_.names();
    if (known.slo_classes.size() != names_.classes.size() || known.tenants.size() != names_.tenants.size() ||
        known.sources.size() != names_.sources.size())
      names_ = group_names(known);
    inner_.write(record);
  }

 private:
  RequestSink& inner_;
  const WorkloadSource& source_;
  GroupNames& names_;
};

/// Names of the classes that a workload will have, which for a trace takes reading it.
std::vector<std::string> class_names(const WorkloadSpec& workload) {
  const std::unique_ptr<WorkloadSource> source = make_source(workload);
  while (source->trace() != nullptr && source->next_time() != kNever) {
    const Offer offer = source->pop();
    source->on_end(offer.request.id, offer.request.arrival, Ending::finished);
  }
  return source->names().slo_classes;
}

/// Floating point operations and bytes of all steps, from which MFU and MBU follow.
void add_hardware(const ScenarioCost& priced, const Scenario& scenario, const WorkTotals& work,
                  ReportContext& context) {
  if (!priced.shape) return;
  const ModelShape& shape = *priced.shape;
  const DeploymentOptions& deployment = scenario.deployment;
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  const double pair_flops = 4.0 * shape.heads * shape.head_dim * shape.layers;
  context.flops_total = 2.0 * count(layer_parameters(shape)) * count(work.computed_tokens) +
                        2.0 * count(head_parameters(shape)) * count(work.sampled_rows) +
                        pair_flops * count(work.attention_pairs);
  const double streamed = streamed_weight_bytes(shape, deployment.weight_precision);
  context.bytes_total = streamed * count(work.weight_passes) +
                        kv_bytes_per_token(shape, deployment.kv_precision) *
                            (count(work.context_tokens_read) + count(work.computed_tokens));
  context.peak_flops_per_s =
      peak_flops(priced.limits, deployment.weight_precision) * deployment.tensor_parallel;
  context.bandwidth_bytes_per_s =
      bandwidth_at(priced.limits, streamed / deployment.tensor_parallel) * deployment.tensor_parallel;
}

/// One replicate and the context that belongs to it.
Simulation simulate_once(const Scenario& scenario, const std::vector<Slo>& slos, const ScenarioCost& priced,
                         const SimulateOptions& options) {
  const std::unique_ptr<WorkloadSource> source = make_source(scenario.workload);
  SimExecutor executor(priced.cost->clone(), scenario.capacity.transfers_overlap);
  Scheduler scheduler(scenario.policy(), scenario.capacity, {options.columns, options.fast_paths});
  CollectorOptions collect;
  collect.delivery = scenario.policy().delivery;
  collect.exact_requests_max = scenario.metrics.exact_requests_max;
  collect.slos = slos;
  collect.block_tokens = scenario.policy().block_tokens;
  GroupNames own_names;
  GroupNames& names = options.names != nullptr ? *options.names : own_names;
  std::optional<NamingSink> sink;
  if (options.sink != nullptr) collect.sink = &sink.emplace(*options.sink, *source, names);
  Collector collector(collect);
  ObserverList both({&collector, options.observer});
  Observer& observer = options.observer != nullptr ? static_cast<Observer&>(both) : collector;
  Engine engine(scheduler, executor, observer, {options.skip_ahead});
  Engine* const engines[] = {&engine};
  VirtualClock clock;
  RunLimits limits;
  limits.horizon = after(Time{}, scenario.horizon);
  limits.stop = options.stop;
  const RunResult run_result = run(*source, engines, clock, nullptr, limits);
  const bool is_cut = !run_result.drained && !run_result.stopped && scenario.horizon != kForever;
  names = group_names(source->names());
  collector.finish_run(is_cut ? std::max(limits.horizon, run_result.end) : run_result.end);

  Simulation result;
  result.stopped = run_result.stopped;
  result.counts = source->counts();
  result.workload_warnings = source->warnings();
  result.context = report_context(scenario, priced, executor.cost().counters(), collector);
  result.context.source_line = source_line(scenario, *source, collector);
  result.context.names = names;
  result.report = make_report(collector, result.context);
  return result;
}

/// Replicates on several threads; each writes to its own place, so that the number of threads changes
/// nothing.
std::vector<Simulation> simulate_all(const Scenario& scenario, const std::vector<Slo>& slos,
                                     const ScenarioCost& priced, const SimulateOptions& options) {
  const auto count = static_cast<std::size_t>(scenario.replicates);
  std::vector<Simulation> results(count);
  std::vector<std::exception_ptr> faults(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      Scenario one = scenario;
      one.workload.seed = scenario.seed + i;
      SimulateOptions own = options;
      if (i > 0) {
        own.sink = nullptr;
        own.observer = nullptr;
        own.names = nullptr;
      }
      try {
        results[i] = simulate_once(one, slos, priced, own);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> helpers;
  const auto threads = std::min<std::size_t>(count, static_cast<std::size_t>(std::max(1, options.threads)));
  for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
  return results;
}

/// SHA-256 of a file as it lies on disk.
Json file_hash(const std::string& path) {
  if (path == "-") return Json();
  constexpr std::string_view kShipped = "shipped:";
  if (path.starts_with(kShipped)) {
    const auto text = resource(path.substr(kShipped.size()));
    return text ? Json(sha256(*text)) : Json();
  }
  if (!std::filesystem::is_regular_file(path)) return Json();  // A pipe cannot be opened twice.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) return Json();
  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 16);
  for (std::size_t size = 1; size > 0;) {
    size = std::fread(buffer.data(), 1, buffer.size(), file.get());
    hash.update({buffer.data(), size});
  }
  return hash.hex();
}

}  // namespace

std::vector<Slo> resolved_slos(const Scenario& scenario) {
  std::vector<Slo> slos = scenario.slo;
  const bool has_class =
      std::any_of(slos.begin(), slos.end(), [](const Slo& s) { return !s.class_name.empty(); });
  resolve_slos(slos, has_class ? class_names(scenario.workload) : std::vector<std::string>{});
  return slos;
}

std::string source_line(const Scenario& scenario, const WorkloadSource& source, const Collector& collector) {
  const WorkloadSpec& workload = scenario.workload;
  const std::string span = duration_text((collector.last_arrival() - Time{}).count());
  const std::string requests = with_commas(source.counts().offered) + " requests over " + span;
  if (const TraceInfo* trace = source.trace()) {
    const std::string file = std::filesystem::path(trace->path).filename().string();
    return "trace  " + file + " (" + std::string(facts(trace->format).name) + "), " + requests +
           (collector.has_prefix_data() ? "" : ", no prefix data");
  }
  const ArrivalSpec& arrivals = workload.arrivals;
  switch (arrivals.kind) {
    case ArrivalKind::gamma:
      return "gamma arrivals at " + short_number(arrivals.rate_per_s) + " req/s with CV " +
             short_number(arrivals.cv) + ", " + requests;
    case ArrivalKind::on_off:
      return "on-off arrivals at " + short_number(arrivals.on_rate_per_s) + " and " +
             short_number(arrivals.off_rate_per_s) + " req/s, " + requests;
    case ArrivalKind::closed_loop:
      return "closed loop of " + std::to_string(arrivals.concurrency) + " clients, " + requests;
    default: return "Poisson arrivals at " + short_number(arrivals.rate_per_s) + " req/s, " + requests;
  }
}

ReportContext report_context(const Scenario& scenario, const ScenarioCost& priced,
                             const CostCounters& counters, const Collector& collector) {
  ReportContext context;
  context.tool_version = std::string(build_info().version);
  context.config = scenario_to_json(scenario);
  context.seed = scenario.seed;
  context.evidence = priced.evidence;
  context.sequences_max = scenario.policy().sequences_max;
  context.batch_tokens_max = scenario.policy().batch_tokens_max;
  context.prefix_cache = scenario.policy().prefix_cache;
  add_hardware(priced, scenario, collector.work(), context);
  context.cost_queries = counters.queries;
  context.cost_out_of_range =
      counters.outside_tokens + counters.outside_decode_count + counters.outside_context;
  context.bootstrap = scenario.replicates == 1 && scenario.metrics.bootstrap_resamples > 0;
  context.bootstrap_options.resamples = scenario.metrics.bootstrap_resamples;
  context.bootstrap_options.block = scenario.metrics.bootstrap_block;
  context.bootstrap_options.seed = scenario.seed;
  return context;
}

Simulation simulate(const Scenario& scenario, const SimulateOptions& options) {
  // Seeds change synthetic work and drawn predictions; a trace is what it is.
  if (scenario.replicates > 1 && scenario.workload.arrivals.kind == ArrivalKind::trace &&
      scenario.policy().order != Order::shortest_predicted)
    throw InputError(
        "replicates: a trace is the same with every seed; expected 1, whose intervals come from "
        "resampling the run, found " +
        std::to_string(scenario.replicates));
  const std::vector<Slo> slos = resolved_slos(scenario);
  const ScenarioCost priced = scenario_cost(scenario);
  std::vector<Simulation> runs = simulate_all(scenario, slos, priced, options);
  Simulation result = std::move(runs.front());
  if (runs.size() > 1) {
    std::vector<Report> reports = {std::move(result.report)};
    for (std::size_t i = 1; i < runs.size(); ++i) {
      reports.push_back(std::move(runs[i].report));
      result.stopped = result.stopped || runs[i].stopped;
    }
    result.report = merge_replicates(reports, result.context);
  }
  if (options.hash_inputs) result.context.inputs = input_hashes(scenario);
  return result;
}

Json input_hashes(const Scenario& scenario) {
  Json inputs = Json::array();
  const auto add = [&](const std::string& path) {
    if (!path.empty()) inputs.push_back(Json::object({{"path", path}, {"sha256", file_hash(path)}}));
  };
  if (scenario.workload.arrivals.kind == ArrivalKind::trace) add(scenario.workload.trace.path);
  for (const ClassSpec& kind : scenario.workload.classes) add(kind.lengths_trace);
  if (scenario.cost.kind == CostKind::profile) add(scenario.cost.profile);
  return inputs;
}

}  // namespace foretoken

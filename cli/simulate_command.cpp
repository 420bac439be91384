#include "cli/simulate_command.hpp"

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/output.hpp"
#include "cli/scenario_flags.hpp"
#include "cli/text_table.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"
#include "sim/metrics/request_writer.hpp"
#include "sim/metrics/step_log.hpp"
#include "sim/simulation.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kForms = "table|md|csv|json";

struct Options {
  CommonOptions common;
  OutputOptions output;
  ScenarioFlags scenario;
  std::string requests_file;
  std::string step_log;
  std::int64_t jobs = kNotGiven;
  bool is_dry = false;
  bool finds_capacity = false;
  bool step_by_step = false;
};

std::string dump(const Json& json) { return json.dump(2) + "\n"; }

RequestFormat request_format(const std::string& path) {
  const bool is_packed = path.ends_with(".gz");
  const std::string name = is_packed ? path.substr(0, path.size() - 3) : path;
  if (name.ends_with(".csv") || name == "-" || name == "/dev/stdout") return RequestFormat::csv;
  if (name.ends_with(".jsonl")) return RequestFormat::jsonl;
  throw UsageError("--requests-file " + path + ": expected a name ending in .csv or .jsonl (.gz too)");
}

/// The report's document with what only the workload knows.
Json document_of(const Simulation& simulation) {
  Json document = report_json(simulation.report, simulation.context);
  Json warnings = Json::array();
  for (const WorkloadWarning warning : simulation.workload_warnings) warnings.push_back(name(warning));
  const WorkloadCounts& counts = simulation.counts;
  document.set("workload", Json::object({{"offered", counts.offered},
                                         {"over_long", counts.over_long},
                                         {"outputs_truncated", counts.outputs_truncated},
                                         {"outside_window", counts.outside_window},
                                         {"turns_abandoned", counts.turns_abandoned},
                                         {"warnings", warnings}}));
  if (simulation.stopped) document.set("interrupted", true);
  return document;
}

std::string render(const Simulation& simulation, const CommonOptions& common, std::string_view form) {
  if (form == "json") return dump(document_of(simulation));
  if (form == "md") return report_markdown(simulation.report, simulation.context);
  if (form == "csv") return report_csv(simulation.report);
  return report_table(simulation.report, simulation.context, {table_columns(), wants_color(common)});
}

void print_warnings(const Simulation& simulation, const CommonOptions& common) {
  if (common.quiet) return;
  for (const WorkloadWarning warning : simulation.workload_warnings)
    std::cerr << "warning: " << advice(warning) << '\n';
  std::cerr << warnings_text(simulation.report) << std::flush;
}

int run_report(const Options& options, const Scenario& scenario) {
  Log log(options.common);
  GroupNames names;
  std::optional<RequestWriter> requests;
  std::optional<StepLogWriter> steps;
  SimulateOptions how;
  how.threads = static_cast<std::int32_t>(
      options.jobs == kNotGiven ? std::max(1U, std::thread::hardware_concurrency()) : options.jobs);
  how.skip_ahead = !options.step_by_step;
  how.fast_paths = !options.step_by_step;
  how.stop = &interrupted();
  how.names = &names;
  how.hash_inputs = is_wanted(options.output, "json");
  if (!options.requests_file.empty())
    how.sink = &requests.emplace(options.requests_file, request_format(options.requests_file), names);
  if (!options.step_log.empty()) {
    StepLogHeader header;
    header.config_hash = sha256(scenario_to_json(scenario).dump());
    header.columns = how.columns = true;
    header.depth = scenario.policy().depth;
    how.observer = &steps.emplace(options.step_log, header);
  }
  log.progress("simulating " + (scenario.name.empty() ? options.scenario.scenario : scenario.name));
  const Simulation simulation = simulate(scenario, how);
  if (requests) requests->commit();
  if (steps) steps->close();
  print_warnings(simulation, options.common);
  deliver(options.output, [&](std::string_view form) { return render(simulation, options.common, form); });
  if (simulation.stopped) return kExitInterrupted;
  return simulation.report.all_pass() ? kExitOk : kExitFinding;
}

int run_capacity(const Options& options, const Scenario& scenario) {
  Log log(options.common);
  CapacityOptions how;
  how.stop = &interrupted();
  how.progress = [&](const CapacityPoint& point) {
    log.progress(short_number(point.rate_per_s) + " req/s: " + short_number(100 * point.served_share) +
                 " % served");
  };
  const CapacityResult found = find_capacity(scenario, how);
  TextTable table({{"rate (req/s)", true}, {"served (%)", true}});
  Json points = Json::array();
  for (const CapacityPoint& point : found.points) {
    table.add({short_number(point.rate_per_s), short_number(100 * point.served_share)});
    points.push_back(Json::object({{"rate_per_s", point.rate_per_s}, {"served_share", point.served_share}}));
  }
  deliver(options.output, [&](std::string_view form) {
    if (form == "csv") return table.render(form, table_columns());
    if (form != "json")
      return table.render(form, table_columns()) + "\ncapacity " + short_number(found.rate_per_s) +
             " req/s: the highest rate at which at least 99 % of the offered requests are served\n";
    Json document = Json::object({{"schema_version", kReportSchemaVersion},
                                  {"tool_version", build_info().version},
                                  {"command", "simulate --capacity"},
                                  {"config", scenario_to_json(scenario)},
                                  {"inputs", input_hashes(scenario)},
                                  {"seed", scenario.seed},
                                  {"result", Json::object({{"capacity_per_s", found.rate_per_s},
                                                           {"served_share", found.served_share},
                                                           {"rate_failed_per_s", found.rate_failed_per_s},
                                                           {"points", points}})}});
    if (found.stopped) document.set("interrupted", true);
    return dump(document);
  });
  if (found.stopped) return kExitInterrupted;
  return kExitOk;
}

void refuse_beside_capacity(const Options& options) {
  const std::string no_report = ", since the search runs many rates and reports none of them";
  const std::pair<bool, std::string> flags[] = {
      {!options.scenario.slo.empty(), "--slo, since the search asks what is served, not how fast"},
      {options.scenario.replicates != kNotGiven, "--replicates, since each rate is run once"},
      {options.jobs != kNotGiven, "--jobs, since each rate is run once"},
      {!options.requests_file.empty(), "--requests-file" + no_report},
      {!options.step_log.empty(), "--step-log" + no_report},
      {options.step_by_step, "--step-by-step" + no_report}};
  for (const auto& [is_given, text] : flags)
    if (is_given) throw UsageError("--capacity: expected no " + text);
}

int run(const Options& options) {
  check_output(options.output, kForms);
  static_cast<void>(wants_color(options.common));
  if (options.finds_capacity) refuse_beside_capacity(options);
  for (const std::string* path : {&options.requests_file, &options.step_log})
    if (!path->empty()) check_folder(*path);
  if (!options.requests_file.empty()) static_cast<void>(request_format(options.requests_file));
  const Scenario scenario = load_scenario(options.scenario);
  if (options.is_dry) {
    static_cast<void>(scenario_cost(scenario));
    check_workload(scenario);
    print_result(dump(scenario_to_json(scenario)));
    return kExitOk;
  }
  return options.finds_capacity ? run_capacity(options, scenario) : run_report(options, scenario);
}

}  // namespace

CommandSpec simulate_command() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"simulate",
                      "Run one scenario and print what would happen",
                      {{"foretoken simulate chat-8b-h100"},
                       {"foretoken simulate chat-8b-h100 --rate 20 --slo 'ttft.p99<2s' --json"},
                       {"foretoken simulate chat-8b-h100 --trace scenarios/traces/sample-chat.jsonl --preset "
                        "sarathi -O report.md"}},
                      {},
                      {},
                      {}};
  add_scenario_flags(command, options->scenario);
  const std::vector<OptionSpec> own = {
      {"--capacity", &options->finds_capacity, "", "Find the highest rate that is served instead"},
      {"--requests-file", &options->requests_file, "FILE", "Every request, as .csv or .jsonl (.gz too)"},
      {"--step-log", &options->step_log, "FILE", "Every step with the hash of its plan, as JSON lines"},
      {"--step-by-step", &options->step_by_step, "", "Without any fast path; every time is the same"},
      {"-j,--jobs", &options->jobs, "COUNT", "Replicates at the same time", false, {1, 1024}},
      {"--dry-run", &options->is_dry, "", "Check everything, print the resolved scenario, run nothing"}};
  command.options.insert(command.options.end(), own.begin(), own.end());
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace foretoken

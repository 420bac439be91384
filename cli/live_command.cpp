#include "cli/live_command.hpp"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <optional>

#include "backend/calibrate.hpp"
#include "backend/cpu/memory_needs.hpp"
#include "cli/device_flags.hpp"
#include "cli/option_value.hpp"
#include "cli/output.hpp"
#include "cli/scenario_flags.hpp"
#include "cli/text_table.hpp"
#include "kernels/bench/sampling.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"
#include "sim/metrics/step_log.hpp"

namespace foretoken {
namespace {

struct LiveOptionSet {
  CommonOptions common;
  OutputOptions output;
  ScenarioFlags scenario;
  DeviceFlags device;
  std::string step_log;
  bool is_dry = false;
};

struct CalibrateOptionSet {
  CommonOptions common;
  OutputOptions output;
  ScenarioFlags scenario;
  DeviceFlags device;
  std::string to = "profile.json";
  double seconds = 45;
  bool is_dry = false;
};

Json live_document(const LiveRun& run) {
  Json document = report_json(run.report, run.context);
  if (run.stopped) document.set("interrupted", true);
  if (!run.lost.empty()) document.set("device_error", run.lost);
  return document;
}

int run_live_command(const LiveOptionSet& options) {
  check_output(options.output, "table|md|csv|json");
  check_device(options.device);
  const Scenario scenario = load_scenario(options.scenario);
  if (!scenario.shape) throw InputError("live: expected a scenario with a model, found none");
  if (!options.step_log.empty()) check_folder(options.step_log);
  check_fits(options.device, live_memory(scenario));
  if (options.is_dry) {
    check_workload(scenario);
    print_result(scenario_to_json(scenario).dump(2) + "\n");
    return kExitOk;
  }
  Log log(options.common);
  log.progress("making weights");
  const std::unique_ptr<DeviceModel> model = live_model(scenario, options.device);
  std::optional<StepLogWriter> steps;
  if (!options.step_log.empty()) {
    StepLogHeader header;
    header.config_hash = sha256(scenario_to_json(scenario).dump());
    header.columns = true;
    header.depth = scenario.policy().depth;
    steps.emplace(options.step_log, header);
  }
  log.progress("live: " + scenario.name);
  LiveRun run = run_live(scenario, *model, steps ? &*steps : nullptr, &interrupted());
  if (steps) steps->close();
  run.context.inputs = input_hashes(scenario);
  if (!options.common.quiet) std::cerr << warnings_text(run.report) << std::flush;
  deliver(options.output, [&](std::string_view form) {
    if (form == "json") return live_document(run).dump(2) + "\n";
    if (form == "md") return report_markdown(run.report, run.context);
    if (form == "csv") return report_csv(run.report);
    return report_table(run.report, run.context, {table_columns(), wants_color(options.common)});
  });
  if (!run.lost.empty()) throw DeviceError(run.lost + "; the report holds what was done before");
  if (run.stopped) return kExitInterrupted;
  return run.report.all_pass() ? kExitOk : kExitFinding;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[11];
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts));
}

std::string profile_text(const Profile& profile, std::string_view form) {
  TextTable table(
      {{"regime"}, {"shapes", true}, {"bias (%)", true}, {"MAPE (%)", true}, {"noise floor (%)", true}});
  for (const RegimeError& e : profile.errors)
    table.add({std::string(regime_name(e.regime)), std::to_string(e.shapes), short_number(100 * e.bias),
               short_number(100 * e.mape),
               e.noise_floor_mape ? short_number(100 * *e.noise_floor_mape) : "-"});
  return table.render(form, table_columns());
}

/// Says what the time was good for, and owns up where it was not kept.
std::string measured_text(double seconds, double passes, double seconds_asked) {
  std::string text =
      "measured for " + short_number(seconds) + " s: " + short_number(passes) + " passes over all shapes";
  if (seconds > 1.1 * seconds_asked)
    text += "; one pass, the least there is, takes longer than the " + short_number(seconds_asked) +
            " s asked for";
  if (passes < 3) text += "; with fewer than three, a disturbance of the machine weighs heavily";
  return text;
}

int run_calibrate_command(const CalibrateOptionSet& options) {
  check_output(options.output, "table|md|csv|json");
  check_device(options.device);
  const Scenario scenario = load_scenario(options.scenario);
  if (!scenario.shape) throw InputError("calibrate: expected a scenario with a model, found none");
  check_folder(options.to);
  check_fits(options.device, calibration_memory(scenario, calibration_options(scenario)));
  if (options.is_dry) {
    print_result(scenario_to_json(scenario).dump(2) + "\n");
    return kExitOk;
  }
  Log log(options.common);
  const std::unique_ptr<DeviceModel> model = live_model(scenario, options.device);
  const auto [profile, seconds, passes] =
      measure_profile(scenario, *model, options.seconds, [&](std::string_view text) { log.progress(text); });
  if (interrupted()) {
    log.note("interrupted: no profile was written");
    return kExitInterrupted;
  }
  write_profile(options.to, profile);
  log.note(measured_text(seconds, passes, options.seconds));
  log.note("profile " + options.to + ", hash " + profile.hash);
  deliver(options.output, [&](std::string_view form) {
    return form == "json" ? profile_to_json(profile).dump(2) + "\n" : profile_text(profile, form);
  });
  return kExitOk;
}

}  // namespace

MeasuredProfile measure_profile(const Scenario& scenario, DeviceModel& model, double seconds_max,
                                const std::function<void(std::string_view)>& progress) {
  // Without all its weights a model cannot be run.
  if (interrupted()) return {};
  const Policy& policy = scenario.policy();
  const double begin = bench::seconds_now();
  progress("calibrate: the machine's limits");
  ProfileOrigin origin = model.origin();
  origin.limits = model.measure_limits(std::min(4.0, 0.1 * seconds_max));
  origin.kernel_build = std::string(build_info().version) + " " + std::string(build_info().compiler);
  origin.date = today();
  origin.depth = policy.depth;
  origin.block_tokens = policy.block_tokens;
  origin.shape = *scenario.shape;
  origin.weight_precision = model.weight_precision();
  origin.kv_precision = model.kv_precision();
  CalibrationOptions how = calibration_options(scenario);
  how.seconds_max = seconds_max - (bench::seconds_now() - begin);
  how.progress = progress;
  how.stop = &interrupted();
  const Calibration measured = calibrate(model, how);
  // Half the shapes make no profile; the callers look at the flag, too.
  if (interrupted()) return {};
  progress("calibrate: fitting " + std::to_string(measured.samples.size()) + " timed steps");
  const double seconds = bench::seconds_now() - begin;
  return {fit_profile(measured.samples, origin, measured.transfers), seconds, measured.passes};
}

CommandSpec live_command() {
  auto options = std::make_shared<LiveOptionSet>();
  CommandSpec command{"live",
                      "Run a scenario in wall-clock time on this machine's processors",
                      {{"foretoken live demo", true},
                       {"foretoken live demo --rate 10 --requests 50 --step-log steps.jsonl", true},
                       {"foretoken live demo --preset sarathi --json", true}},
                      {},
                      {},
                      {}};
  add_scenario_flags(command, options->scenario);
  refuse_option(command, "--replicates",
                "does not apply, since a live run is a single one; it applies to simulate, and validate "
                "repeats live runs with --repeats");
  refuse_option(command, "--profile",
                "does not apply, since live steps are timed and not priced; it applies to simulate and "
                "validate");
  const std::vector<OptionSpec> own = {
      {"--step-log", &options->step_log, "FILE", "Every step with the hash of its plan, as JSON lines"},
      {"--dry-run", &options->is_dry, "", "Check everything, print the resolved scenario, run nothing"}};
  command.options.insert(command.options.end(), own.begin(), own.end());
  add_device_flags(command, options->device);
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] { return run_live_command(*options); };
  return command;
}

CommandSpec calibrate_command() {
  auto options = std::make_shared<CalibrateOptionSet>();
  CommandSpec command{"calibrate",
                      "Measure what steps of a scenario's model cost on this machine",
                      {{"foretoken calibrate demo", true},
                       {"foretoken calibrate demo --to m25.json --seconds 20", true},
                       {"foretoken calibrate demo --set model=m100 --json", true}},
                      {},
                      {},
                      {}};
  add_scenario_flags(command, options->scenario);
  for (const char* name : {"--trace", "--format", "--columns", "--sort", "--spread-ties", "--zero-output",
                           "--rate", "--requests", "--horizon", "--slo", "--replicates"})
    refuse_option(command, name,
                  "does not apply, since calibrate times steps and runs no workload; it applies to simulate");
  refuse_option(
      command, "--profile",
      "does not apply, since calibrate makes a profile (--to); it applies to simulate and validate");
  const std::vector<OptionSpec> own = {
      {"--to", &options->to, "FILE", "Where the profile goes"},
      {"--seconds", &options->seconds, "SECONDS",
       "Time to measure for; one pass over all shapes is the least", false, kSeconds},
      {"--dry-run", &options->is_dry, "", "Check everything, print the resolved scenario, run nothing"}};
  command.options.insert(command.options.end(), own.begin(), own.end());
  add_device_flags(command, options->device);
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] { return run_calibrate_command(*options); };
  return command;
}

}  // namespace foretoken

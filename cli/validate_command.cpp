#include "cli/validate_command.hpp"

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "backend/calibrate.hpp"
#include "backend/cpu/memory_needs.hpp"
#include "backend/validate.hpp"
#include "cli/device_flags.hpp"
#include "cli/live_command.hpp"
#include "cli/option_value.hpp"
#include "cli/output.hpp"
#include "cli/scenario_flags.hpp"
#include "cli/text_table.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"

namespace foretoken {
namespace {

struct Options {
  CommonOptions common;
  OutputOptions output;
  ScenarioFlags scenario;
  std::string loads = "0.3,0.7,0.95";
  std::string folder = "foretoken-demo";
  std::int64_t repeats = 5;
  DeviceFlags device;
  double seconds = 40;
  bool is_dry = false;
};

std::vector<double> parse_loads(const std::string& text) {
  std::vector<double> loads;
  for (const std::string_view part : split(text, ',')) {
    const auto load = parse_double(trim(part));
    if (!load || *load <= 0 || *load > 2)
      throw UsageError("--loads: expected shares of the capacity such as 0.3,0.95, found \"" + text + "\"");
    loads.push_back(*load);
  }
  return loads;
}

std::string percent(double share) { return short_number(100 * share); }
std::string milliseconds(double seconds) { return short_number(1e3 * seconds); }
/// What is not known is no 0.
std::string percent(std::optional<double> share) { return share ? percent(*share) : "-"; }
std::string milliseconds(std::optional<double> seconds) { return seconds ? milliseconds(*seconds) : "-"; }

std::string verdict_text(const MetricError& error) {
  if (!error.live_sd_s) return "one run: spread unknown";
  return error.inconclusive ? "inconclusive" : "";
}

std::string validation_text(const Validation& v, std::string_view form) {
  std::string text = std::string("PLANS  ") + (v.plans_equal ? "equal" : "DIFFERENT") + " by both replays, " +
                     with_commas(v.plans_compared) + " compared\n";
  if (!v.plan_difference.empty()) text += "       first difference, " + v.plan_difference + "\n";
  TextTable steps({{"STEPS"},
                   {"count", true},
                   {"bias (%)", true},
                   {"+- 2 se", true},
                   {"MAPE (%)", true},
                   {"noise floor (%)", true}});
  for (const StepError& e : v.steps)
    steps.add({std::string(regime_name(e.regime)), with_commas(e.steps), percent(e.bias),
               percent(e.bias_two_se), percent(e.mape), percent(e.noise_floor_mape)});
  TextTable metrics({{"REQUESTS"},
                     {"load (%)", true},
                     {"predicted (ms)", true},
                     {"live (ms)", true},
                     {"sd (ms)", true},
                     {"error (%)", true},
                     {"verdict"}});
  for (const MetricError& e : v.metrics)
    metrics.add({e.metric + " mean", percent(e.load), milliseconds(e.predicted_s),
                 milliseconds(e.live_mean_s), milliseconds(e.live_sd_s), percent(e.error), verdict_text(e)});
  text += "\n" + steps.render(form, table_columns()) + "\n" + metrics.render(form, table_columns());
  if (!v.machine.empty()) {
    TextTable machine({{"MACHINE"}, {"drift (%)", true}, {"live steps, bias (%)", true}});
    for (const MachineDrift& m : v.machine)
      machine.add({percent(m.load) + " % load", percent(m.drift), percent(m.step_bias)});
    text += "\n" + machine.render(form, table_columns()) +
            "drift: steps of the calibration timed again around the live runs; a machine that became slower\n"
            "by x % gives prices a bias of about -x %, which no cost model can foretell\n";
  }
  text += "\n";
  text += wrapped("capacity " + short_number(v.capacity_per_s) + " req/s; capacity error " +
                      percent(v.capacity_error) +
                      " %: the change of the arrival rate that explains the live e2e at the highest load",
                  0, static_cast<std::size_t>(table_columns()));
  text += "profile " + v.profile_hash + "\nfrozen before the first live run\n";
  return text;
}

Json document_of(const Validation& v, const Scenario& scenario, std::string_view command) {
  Json document = Json::object({{"schema_version", 1},
                                {"tool_version", build_info().version},
                                {"command", command},
                                {"config", scenario_to_json(scenario)},
                                {"inputs", input_hashes(scenario)},
                                {"seed", scenario.seed}});
  // The figures stand at the top as well, where scripts look for them.
  const Json result = validation_to_json(v);
  for (const auto& [key, value] : result.as_object()) document.set(key, value);
  if (v.stopped) document.set("interrupted", true);
  return document;
}

Validation run_validation(const Scenario& scenario, DeviceModel& model, const Options& options, Log& log,
                          bool aloud) {
  ValidateOptions how;
  how.loads = parse_loads(options.loads);
  how.repeats = static_cast<std::int32_t>(options.repeats);
  how.stop = &interrupted();
  how.progress = [&log, aloud](std::string_view text) { aloud ? log.note(text) : log.progress(text); };
  return validate(scenario, model, how);
}

int verdict(const Validation& v) {
  if (v.stopped) return kExitInterrupted;
  return v.plans_equal ? kExitOk : kExitFinding;
}

int run_validate(const Options& options) {
  check_output(options.output, "table|md|json");
  check_device(options.device);
  const Scenario scenario = load_scenario(options.scenario);
  static_cast<void>(parse_loads(options.loads));
  if (!scenario.shape) throw InputError("validate: expected a scenario with a model, found none");
  check_fits(options.device, live_memory(scenario));
  // For the drift of the machine.
  check_fits(options.device, calibration_memory(scenario, calibration_options(scenario)));
  if (options.is_dry) {
    static_cast<void>(scenario_cost(scenario));
    check_workload(scenario);
    print_result(scenario_to_json(scenario).dump(2) + "\n");
    return kExitOk;
  }
  Log log(options.common);
  const std::string hash = scenario.cost.kind == CostKind::profile ? read_profile(scenario.cost.profile).hash
                                                                   : scenario_cost(scenario).cost->hash();
  log.note("profile hash " + hash + ", frozen before the first live run");
  const std::unique_ptr<DeviceModel> model = live_model(scenario, options.device);
  const Validation v = run_validation(scenario, *model, options, log, false);
  deliver(options.output, [&](std::string_view form) {
    return form == "json" ? document_of(v, scenario, "validate").dump(2) + "\n" : validation_text(v, form);
  });
  return verdict(v);
}

int run_demo(const Options& options) {
  check_output(options.output, "table|md|json");
  check_device(options.device);
  static_cast<void>(parse_loads(options.loads));
  Options demo = options;
  demo.scenario.scenario = "demo";
  Scenario scenario = load_scenario(demo.scenario);
  check_fits(options.device, live_memory(scenario));
  check_fits(options.device, calibration_memory(scenario, calibration_options(scenario)));
  if (options.is_dry) {
    print_result(scenario_to_json(scenario).dump(2) + "\n");
    return kExitOk;
  }
  Log log(options.common);
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);
  if (failed) throw DeviceError(options.folder + ": " + failed.message());
  const std::string profile_path = options.folder + "/profile.json";
  const std::unique_ptr<DeviceModel> model = live_model(scenario, options.device);
  log.note("calibrate: step costs of " + scenario.model + " on this machine");
  const Profile profile = measure_profile(scenario, *model, options.seconds, [&](std::string_view text) {
                            log.note(text);
                          }).profile;
  if (interrupted()) return kExitInterrupted;
  write_profile(profile_path, profile);
  log.note("profile " + profile_path + ", hash " + profile.hash + ", frozen from here on");
  demo.scenario.profile = profile_path;
  scenario = load_scenario(demo.scenario);
  const Validation v = run_validation(scenario, *model, demo, log, true);
  write_file(options.folder + "/validation.json", document_of(v, scenario, "demo").dump(2) + "\n");
  write_file(options.folder + "/validation.md", validation_text(v, "md"));
  deliver(options.output, [&](std::string_view form) {
    return form == "json" ? document_of(v, scenario, "demo").dump(2) + "\n" : validation_text(v, form);
  });
  log.note("written: " + profile_path + ", " + options.folder + "/validation.json, " + options.folder +
           "/validation.md");
  return verdict(v);
}

}  // namespace

CommandSpec validate_command() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"validate",
                      "Compare predictions with live runs: plans, steps, requests, capacity",
                      {{"foretoken validate demo --loads 0.5,0.9 --repeats 2", true},
                       {"foretoken calibrate demo --to profile.json", true},
                       {"foretoken validate demo --profile profile.json --json", true}},
                      {},
                      {},
                      {}};
  add_scenario_flags(command, options->scenario);
  refuse_option(command, "--rate",
                "does not apply, since --loads says the rates as shares of the capacity; it applies to "
                "simulate and live");
  refuse_option(command, "--replicates",
                "does not apply, since --repeats says how many live runs there are; it applies to simulate");
  refuse_option(
      command, "--slo",
      "does not apply, since predictions and not limits are judged; it applies to simulate and live");
  const std::vector<OptionSpec> own = {
      {"--loads", &options->loads, "SHARES", "Shares of the capacity that the simulator finds"},
      {"--repeats", &options->repeats, "COUNT", "Live runs at each load; a spread needs 2", false, kRuns},
      {"--dry-run", &options->is_dry, "", "Check everything, print the resolved scenario, run nothing"}};
  command.options.insert(command.options.end(), own.begin(), own.end());
  add_device_flags(command, options->device);
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] { return run_validate(*options); };
  return command;
}

CommandSpec demo_command() {
  auto options = std::make_shared<Options>();
  options->repeats = 5;
  CommandSpec command{"demo",
                      "Calibrate, simulate, run live and validate on this machine, in minutes",
                      {{"foretoken demo", true}, {"foretoken demo --folder /tmp/demo --repeats 2", true}},
                      {},
                      {},
                      {}};
  command.options = {
      {"--folder", &options->folder, "FOLDER", "Where profile and reports go"},
      {"--loads", &options->loads, "SHARES", "Shares of the capacity that the simulator finds"},
      {"--repeats", &options->repeats, "COUNT", "Live runs at each load; a spread needs 2", false, kRuns},
      {"--seconds", &options->seconds, "SECONDS",
       "Time to calibrate for; one pass over all shapes is the least", false, kSeconds},
      {"--dry-run", &options->is_dry, "", "Check everything, print the scenario, run nothing"}};
  add_device_flags(command, options->device);
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] { return run_demo(*options); };
  return command;
}

}  // namespace foretoken

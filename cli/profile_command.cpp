#include "cli/profile_command.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/output.hpp"
#include "cli/text_table.hpp"
#include "models/profile.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kForms = "table|md|csv|json";
constexpr std::string_view kShipped = "models/data/profiles/";

struct Options {
  CommonOptions common;
  OutputOptions output;
  std::string path;
};

std::string percent(double share) { return short_number(100.0 * share) + " %"; }

/// Paths of the shipped profiles and of those in a folder, sorted.
std::vector<std::string> profile_paths(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& path : resource_paths(kShipped)) paths.push_back("shipped:" + path);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) throw input_error(folder, "a folder", "none");
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(".profile.json") || name.ends_with(".profile.json.gz"))
      paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string list(const std::string& folder, std::string_view form) {
  TextTable table({{"profile"},
                   {"grade", false, 1},
                   {"model"},
                   {"device", false, 2},
                   {"date", false, 4},
                   {"hash", false, 3}});
  Json all = Json::array();
  for (const std::string& path : profile_paths(folder)) {
    const Profile profile = read_profile(path);
    const ProfileOrigin& origin = profile.origin;
    table.add({path, std::string(grade_name(origin.grade)), origin.shape.name, origin.device, origin.date,
               profile.hash.substr(0, 12)});
    all.push_back(Json::object({{"path", path},
                                {"grade", grade_name(origin.grade)},
                                {"model", origin.shape.name},
                                {"device", origin.device},
                                {"date", origin.date},
                                {"hash", profile.hash}}));
  }
  if (form == "json") return Json::object({{"schema_version", 1}, {"profiles", all}}).dump(2) + "\n";
  return table.render(form, table_columns());
}

std::string show(const Profile& profile, std::string_view form) {
  if (form == "json") return profile_to_json(profile).dump(2) + "\n";
  TextTable errors({{"regime"},
                    {"shapes", true},
                    {"bias", true},
                    {"MAPE", true},
                    {"noise floor", true},
                    {"spikes", true}});
  for (const RegimeError& error : profile.errors)
    errors.add({std::string(regime_name(error.regime)), std::to_string(error.shapes), percent(error.bias),
                percent(error.mape), error.noise_floor_mape ? percent(*error.noise_floor_mape) : "-",
                percent(error.spike_share)});
  if (form == "csv") return errors.render(form, table_columns());
  const ProfileOrigin& origin = profile.origin;
  std::string text;
  const auto line = [&](std::string name, const std::string& value) {
    name.resize(12, ' ');
    if (!value.empty()) text += name + value + "\n";
  };
  line("grade", std::string(grade_name(origin.grade)));
  line("model", origin.shape.name + ", weights " + std::string(precision_name(origin.weight_precision)) +
                    ", KV " + std::string(precision_name(origin.kv_precision)));
  line("device", origin.device);
  line("driver", origin.driver);
  line("clocks", origin.clocks);
  line("kernels", origin.kernel_build);
  line("date", origin.date);
  line("mode", std::to_string(origin.threads) + " threads, depth " + std::to_string(origin.depth) +
                   ", blocks of " + std::to_string(origin.block_tokens) + " tokens");
  line("measured", std::to_string(profile.samples.size()) + " shapes; up to " +
                       with_commas(profile.range.tokens_max) + " tokens, " +
                       with_commas(profile.range.decodes_max) + " decodes, context " +
                       with_commas(profile.range.context_max));
  line("below floor", std::to_string(profile.samples_below_floor) + " shapes");
  line("hash", profile.hash);
  return text + "\nErrors of a fit without the held-out shapes\n" + errors.render(form, table_columns());
}

CommandSpec list_spec() {
  auto options = std::make_shared<Options>();
  options->path = ".";
  CommandSpec command{
      "list",
      "Profiles that ship with the program, and those in a folder",
      {{"foretoken profile list"}, {"foretoken profile list . --json"}},
      {{"folder", &options->path, "FOLDER", "Where files named *.profile.json are looked for"}},
      {},
      {}};
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] {
    check_output(options->output, kForms);
    deliver(options->output, [&](std::string_view form) { return list(options->path, form); });
    return kExitOk;
  };
  return command;
}

CommandSpec show_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"show",
                      "Where a profile comes from, what it covers, how wrong it is",
                      {{"foretoken calibrate demo --to cpu.profile.json", true},
                       {"foretoken profile show cpu.profile.json"},
                       {"foretoken profile show cpu.profile.json -o md"}},
                      {{"profile", &options->path, "FILE", "The profile", true}},
                      {},
                      {}};
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] {
    check_output(options->output, kForms);
    const Profile profile = read_profile(options->path);
    deliver(options->output, [&](std::string_view form) { return show(profile, form); });
    return kExitOk;
  };
  return command;
}

CommandSpec check_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"check",
                      "Whether a profile is whole: schema, hash, hardware floor",
                      {{"foretoken calibrate demo --to cpu.profile.json", true},
                       {"foretoken profile check cpu.profile.json"}},
                      {{"profile", &options->path, "FILE", "The profile", true}},
                      {},
                      {}};
  add_common(command, options->common);
  command.run = [options]() -> int {
    const Profile profile = read_profile(options->path);
    print_result("hash " + profile.hash + " matches the content\n" + std::to_string(profile.samples.size()) +
                 " shapes, " + std::to_string(profile.samples_below_floor) + " below the hardware floor\n");
    return profile.samples_below_floor == 0 ? kExitOk : kExitFinding;
  };
  return command;
}

}  // namespace

CommandSpec profile_command() {
  return {"profile",
          "Step cost profiles: list, show, check",
          {{"foretoken profile list"},
           {"foretoken calibrate demo --to cpu.profile.json", true},
           {"foretoken profile show cpu.profile.json"},
           {"foretoken profile check cpu.profile.json"}},
          {},
          {list_spec(), show_spec(), check_spec()},
          {}};
}

}  // namespace foretoken

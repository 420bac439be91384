#include "cli/presets_command.hpp"

#include <algorithm>
#include <memory>

#include "cli/output.hpp"
#include "cli/text_table.hpp"
#include "sim/base/error.hpp"
#include "sim/presets.hpp"
#include "sim/scenario_policy.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kForms = "table|md|csv|json";

struct Options {
  CommonOptions common;
  OutputOptions output;
  std::string name;
};

std::string text_of(const Json& value) {
  if (value.is_null()) return "derived";
  return value.is_string() ? value.as_string() : value.dump();
}

Json field_json(const Field& field) {
  return Json::object({{"name", field.name},
                       {"default", field_default(field)},
                       {"unit", field.unit},
                       {"allowed", field_range(field)},
                       {"description", field.description}});
}

Json preset_json(const Preset& preset) {
  Json parameters = Json::array();
  for (const EngineParameter* parameter : preset.parameters)
    parameters.push_back(field_json(parameter->field));
  return Json::object({{"name", preset.name},
                       {"description", preset.description},
                       {"parameters", parameters},
                       {"policy", policy_to_json(preset.policy())}});
}

std::string list(std::string_view form) {
  if (form == "json") {
    Json all = Json::array();
    for (const Preset& preset : presets()) all.push_back(preset_json(preset));
    return Json::object({{"schema_version", 1}, {"presets", all}}).dump(2) + "\n";
  }
  TextTable table({{"preset"}, {"parameters", true, 1}, {"description"}});
  for (const Preset& preset : presets())
    table.add({std::string(preset.name), std::to_string(preset.parameters.size()),
               std::string(preset.description)});
  return table.render(form, table_columns());
}

const Preset& preset_named(const std::string& name) {
  if (const Preset* preset = find_preset(name)) return *preset;
  std::vector<std::string> names;
  std::string known;
  for (const Preset& preset : presets()) {
    names.emplace_back(preset.name);
    known += (known.empty() ? "" : ", ") + names.back();
  }
  const std::string near = nearest(name, names);
  throw UsageError("presets show: expected one of " + known + ", found \"" + name + "\"" +
                   (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
}

/// A parameter for people: name, default, values allowed, and what it means in the line below.
void append_entry(std::string& text, const Field& field, const std::string& value) {
  std::string line = "  " + std::string(field.name) + " = " + value;
  constexpr std::size_t kRangeColumn = 60;
  constexpr std::size_t kLineMax = 100;
  const std::string range = field_range(field);
  const bool fits = std::max(line.size() + 2, kRangeColumn) + range.size() <= kLineMax;
  if (fits) line.resize(std::max(line.size() + 2, kRangeColumn), ' ');
  text += line + (fits ? range : "") + "\n      " + std::string(field.description) + "\n";
  if (!fits) text += "      " + range + "\n";
}

/// The default as people read it: a derived one is explained in the description.
std::string default_of(const Field& field) {
  constexpr std::string_view kMark = "; default: ";
  const std::size_t at = field.description.find(kMark);
  if (at != std::string_view::npos) return std::string(field.description.substr(at + kMark.size()));
  return text_of(field_default(field));
}

Field without_default(Field field) {
  field.description = field.description.substr(0, field.description.find("; default: "));
  return field;
}

std::string show_text(const Preset& preset) {
  std::string text = std::string(preset.name) + ": " + std::string(preset.description) + ".\n\nParameters\n";
  for (const EngineParameter* parameter : preset.parameters)
    append_entry(text, without_default(parameter->field), default_of(parameter->field));
  text += "\nPolicy before the parameters apply; engine.sched in a scenario overrides it last\n";
  const Policy policy = preset.policy();
  for (const PolicyField& row : policy_fields()) {
    const Json value = row.get(policy);
    append_entry(text, row.field, value.is_null() ? "no limit" : text_of(value));
  }
  return text;
}

std::string show(const Preset& preset, std::string_view form) {
  if (form == "json") {
    Json document = Json::object({{"schema_version", 1}});
    const Json shown = preset_json(preset);
    for (const auto& [key, value] : shown.as_object()) document.set(key, value);
    return document.dump(2) + "\n";
  }
  if (form == "table") return show_text(preset);
  TextTable table({{"parameter"}, {"default"}, {"unit"}, {"allowed"}, {"description"}});
  for (const EngineParameter* parameter : preset.parameters) {
    const Field field = without_default(parameter->field);
    table.add({std::string(field.name), default_of(parameter->field), std::string(field.unit),
               field_range(field), std::string(field.description)});
  }
  return table.render(form, table_columns());
}

}  // namespace

CommandSpec presets_command() {
  // One for all, so that `presets --json show static` means what it says.
  auto options = std::make_shared<Options>();
  CommandSpec list_spec{"list",
                        "All presets in a table",
                        {{"foretoken presets list"}, {"foretoken presets list --json"}},
                        {},
                        {},
                        {}};
  add_output(list_spec, options->output);
  add_common(list_spec, options->common);
  list_spec.run = [options] {
    check_output(options->output, kForms);
    deliver(options->output, list);
    return kExitOk;
  };
  CommandSpec show_spec{"show",
                        "Parameters, defaults and policy of one preset",
                        {{"foretoken presets show vllm-v1"}, {"foretoken presets show static -o md"}},
                        {},
                        {},
                        {}};
  show_spec.options.push_back({"name", &options->name, "NAME", "The preset", true});
  add_output(show_spec, options->output);
  add_common(show_spec, options->common);
  show_spec.run = [options] {
    check_output(options->output, kForms);
    const Preset& preset = preset_named(options->name);
    deliver(options->output, [&](std::string_view form) { return show(preset, form); });
    return kExitOk;
  };
  CommandSpec command{
      "presets",
      "Engine presets, their parameters and defaults",
      {{"foretoken presets"}, {"foretoken presets show vllm-v1"}, {"foretoken presets list --json"}},
      {},
      {list_spec, show_spec},
      {}};
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = list_spec.run;
  return command;
}

}  // namespace foretoken

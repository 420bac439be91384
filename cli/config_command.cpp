#include "cli/config_command.hpp"

#include <memory>

#include "cli/output.hpp"
#include "cli/scenario_flags.hpp"
#include "cli/text_table.hpp"
#include "sim/base/json.hpp"
#include "sim/scenario_document.hpp"

namespace foretoken {
namespace {

/// What is JSON anyway takes the flag that asks for it.
void add_json(CommandSpec& command, bool& json) {
  command.options.push_back({"--json", &json, "", "One JSON document, as it always is"});
}

CommandSpec show_spec() {
  struct Options {
    CommonOptions common;
    ScenarioFlags scenario;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CommandSpec command{"show",
                      "The resolved scenario: every default and override in its place",
                      {{"foretoken config show chat-8b-h100"},
                       {"foretoken config show chat-8b-h100 --set engine.max_num_seqs=64 --preset sarathi"}},
                      {},
                      {},
                      {}};
  add_scenario_flags(command, options->scenario);
  add_json(command, options->json);
  add_common(command, options->common);
  command.run = [options] {
    print_result(scenario_to_json(load_scenario(options->scenario)).dump(2) + "\n");
    return kExitOk;
  };
  return command;
}

CommandSpec schema_spec() {
  struct Options {
    CommonOptions common;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CommandSpec command{"schema", "JSON Schema of scenario files", {{"foretoken config schema"}}, {}, {}, {}};
  add_json(command, options->json);
  add_common(command, options->common);
  command.run = [options] {
    print_result(scenario_schema().dump(2) + "\n");
    return kExitOk;
  };
  return command;
}

CommandSpec list_spec() {
  struct Options {
    CommonOptions common;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  CommandSpec command{"list",
                      "Scenarios that ship with the program",
                      {{"foretoken config list"}, {"foretoken config list --json"}},
                      {},
                      {},
                      {}};
  add_output(command, options->output);
  add_common(command, options->common);
  command.run = [options] {
    check_output(options->output, "table|md|csv|json");
    TextTable table({{"scenario"}, {"description"}});
    Json all = Json::array();
    for (const std::string& name : shipped_scenarios()) {
      const ScenarioDocument document = read_document(name);
      const Json* text = document.content.find("description");
      const std::string description = text != nullptr && text->is_string() ? text->as_string() : "";
      table.add({name, description});
      all.push_back(Json::object({{"name", name}, {"description", description}}));
    }
    deliver(options->output, [&](std::string_view form) {
      if (form != "json") return table.render(form, table_columns());
      return Json::object({{"schema_version", 1}, {"scenarios", all}}).dump(2) + "\n";
    });
    return kExitOk;
  };
  return command;
}

}  // namespace

CommandSpec config_command() {
  return {"config",
          "Scenarios as they will be run, and their schema",
          {{"foretoken config list"}, {"foretoken config show chat-8b-h100"}, {"foretoken config schema"}},
          {},
          {show_spec(), schema_spec(), list_spec()},
          {}};
}

}  // namespace foretoken

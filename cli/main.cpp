#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/version.hpp"

namespace foretoken {
namespace {

/// Help that begins with examples, because most people want to see one and go.
class ExamplesFirst : public CLI::Formatter {
 public:
  explicit ExamplesFirst(std::vector<Example> examples) : examples_(std::move(examples)) { column_width(34); }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, name, mode);
    std::string text;
    if (!examples_.empty()) text += "Examples:\n";
    for (const Example& example : examples_) text += "  " + example.line + "\n";
    return text + (examples_.empty() ? "" : "\n") + CLI::Formatter::make_help(app, name, mode);
  }

 private:
  std::vector<Example> examples_;
};

struct AddOption {
  CLI::App& app;
  const OptionSpec& option;

  void operator()(bool* target) const { app.add_flag(option.names, *target, option.description); }
  template <class Value>
  void operator()(Value* target) const {
    CLI::Option* added = app.add_option(option.names, *target, option.description);
    if (!option.value.empty()) added->option_text(option.value);
    added->required(option.is_required);
  }
  void operator()(std::vector<std::string>* target) const {
    CLI::Option* added = app.add_option(option.names, *target, option.description);
    // One value each time, so that a positional argument may follow.
    if (option.names.starts_with('-')) added->type_size(1)->allow_extra_args(false);
    if (!option.value.empty()) added->option_text(option.value + " ...");
    added->required(option.is_required);
  }
};

/// Adds a command and all below it; the one that was called is left in `called`.
void add_command(CLI::App& app, const CommandSpec& command, const CommandSpec*& called) {
  app.formatter(std::make_shared<ExamplesFirst>(command.examples));
  for (const OptionSpec& option : command.options) std::visit(AddOption{app, option}, option.target);
  for (const CommandSpec& child : command.children) {
    CLI::App* sub = app.add_subcommand(child.name, child.description);
    add_command(*sub, child, called);
  }
  if (!command.run) app.require_subcommand(1);
  app.callback([&app, &command, &called] {
    if (app.get_subcommands().empty()) called = &command;
  });
}

/// CLI11's message, and where to read more.
int report_usage(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    print_result(dynamic_cast<const CLI::CallForAllHelp*>(&error) ? app.help("", CLI::AppFormatMode::All)
                                                                  : app.help());
    return kExitOk;
  }
  std::cerr << "foretoken: error: " << error.what() << "\nTry: foretoken";
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) {
    deepest = deepest->get_subcommands().front();
    std::cerr << ' ' << deepest->get_name();
  }
  std::cerr << " --help\n";
  return kExitUsage;
}

int run(int count, char** arguments) {
  const CommandSpec program = all_commands();
  const CommandSpec* called = nullptr;
  bool version = false;
  bool json = false;
  CLI::App app(program.description, "foretoken");
  add_command(app, program, called);
  app.require_subcommand(0, 1);
  app.add_flag("--version", version, "Print the version; with --json all that is known of the build");
  app.add_flag("--json", json, "With --version: one JSON document");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error);
  }
  if (version) {
    print_result(version_text(json));
    return kExitOk;
  }
  if (called == nullptr || !called->run) {
    print_result(app.help());
    return kExitUsage;
  }
  return called->run();
}

}  // namespace
}  // namespace foretoken

int main(int count, char** arguments) {
  foretoken::install_signal_handlers();
  return foretoken::run_guarded([&] { return foretoken::run(count, arguments); });
}

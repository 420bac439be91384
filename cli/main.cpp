#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/option_value.hpp"
#include "cli/output.hpp"
#include "cli/version.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kDescriptionColumn = 34;

/// Help that begins with examples, because most people want to see one and go.
class ExamplesFirst : public CLI::Formatter {
 public:
  explicit ExamplesFirst(std::vector<Example> examples) : examples_(std::move(examples)) {
    column_width(kDescriptionColumn);
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, name, mode);
    std::string text;
    if (!examples_.empty()) text += "Examples:\n";
    for (const Example& example : examples_) text += "  " + example.line + "\n";
    text += (examples_.empty() ? "" : "\n") + CLI::Formatter::make_help(app, name, mode);
    return wrapped_help(text, kDescriptionColumn);
  }

 private:
  std::vector<Example> examples_;
};

struct AddOption {
  CLI::App& app;
  const OptionSpec& option;

  void operator()(bool* target) const { app.add_flag(option.names, *target, option.description); }
  void operator()(std::string* target) const {
    finish(app.add_option(option.names, *target, option.description));
  }
  /// Numbers are read here and not by CLI11, which takes 010 for 8 and clips what is too large.
  template <class Number>
  void operator()(Number* target) const {
    const auto read = [&spec = option, target](const std::string& written) {
      read_number(spec, written, *target);
    };
    finish(app.add_option_function<std::string>(option.names, read, option.description));
  }
  void operator()(std::vector<std::string>* target) const {
    CLI::Option* added = app.add_option(option.names, *target, option.description);
    // One value each time, so that a positional argument may follow.
    if (option.names.starts_with('-')) added->type_size(1)->allow_extra_args(false);
    if (!option.value.empty()) added->option_text(option.value + " ...");
    added->required(option.is_required);
  }

 private:
  void finish(CLI::Option* added) const {
    if (!option.value.empty()) added->option_text(option.value);
    added->required(option.is_required);
  }
};

/// An option of other commands: not in the help, and an error that says where it belongs.
void add_refused(CLI::App& app, const OptionSpec& option) {
  const auto refuse = [&option](const std::string&) {
    throw UsageError(option_name(option) + ": " + option.refusal);
  };
  const bool is_flag = std::holds_alternative<bool*>(option.target);
  CLI::Option* added = is_flag ? app.add_flag_function(option.names, [refuse](std::int64_t) { refuse(""); })
                               : app.add_option_function<std::string>(option.names, refuse);
  added->group("");
}

/// Adds a command and all below it; the one that was called is left in `called`.
void add_command(CLI::App& app, const CommandSpec& command, const CommandSpec*& called) {
  app.formatter(std::make_shared<ExamplesFirst>(command.examples));
  for (const OptionSpec& option : command.options) {
    if (option.refusal.empty())
      std::visit(AddOption{app, option}, option.target);
    else
      add_refused(app, option);
  }
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
  if (json)
    throw UsageError(
        "--json: expected --version before it, or a command, such as foretoken config list --json");
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

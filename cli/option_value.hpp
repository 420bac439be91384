#pragma once
#include <string>

#include "cli/command.hpp"

namespace foretoken {

/// The name by which errors call an option: its long one.
std::string option_name(const OptionSpec& option);
/// Puts the number that was written in its place. A UsageError that shows it as written for anything but a
/// number in the option's range.
void read_number(const OptionSpec& option, const std::string& written, std::int64_t& target);
void read_number(const OptionSpec& option, const std::string& written, double& target);

/// Says of a command's option that it does not apply, though other commands have it; `why` says when it does.
/// It is not in the help, and giving it is a UsageError.
void refuse_option(CommandSpec& command, std::string_view name, const std::string& why);

/// Help as it is printed: no line longer than 100 columns, continued below the beginning of its text; lines
/// that are commands are continued as a shell continues them.
std::string wrapped_help(const std::string& text, std::size_t description_column);

}  // namespace foretoken

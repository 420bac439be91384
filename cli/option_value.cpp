#include "cli/option_value.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kColumnsMax = 100;

std::string bound_text(double value, bool is_whole) {
  return is_whole || (std::abs(value) < 1e15 && value == std::trunc(value))
             ? std::to_string(static_cast<std::int64_t>(value))
             : to_text(value);
}

std::string expected_text(const NumberRange& range, bool is_whole) {
  const std::string kind = is_whole ? "a whole number" : "a number";
  const bool has_low = std::isfinite(range.low), has_high = std::isfinite(range.high);
  if (!has_low && !has_high) return kind;
  const std::string low = bound_text(has_low ? range.low : 0, is_whole);
  const std::string high = bound_text(has_high ? range.high : 0, is_whole);
  if (range.excludes_low) return kind + " above " + low + (has_high ? " and up to " + high : "");
  if (!has_high) return kind + " of at least " + low;
  return kind + " in [" + (has_low ? low : "-inf") + ", " + high + "]";
}

/// As long doubles, which hold every whole number exactly.
bool is_inside(const NumberRange& range, long double value) {
  return value <= range.high && (range.excludes_low ? value > range.low : value >= range.low);
}

template <class Number>
void read(const OptionSpec& option, const std::string& written, std::optional<Number> value, bool is_whole,
          Number& target) {
  if (!value || !is_inside(option.range, static_cast<long double>(*value)))
    throw UsageError(option_name(option) + ": expected " + expected_text(option.range, is_whole) +
                     ", found \"" + written.substr(0, 80) + "\"");
  target = *value;
}

/// "+5" is a number, too.
std::string_view without_plus(std::string_view text) {
  const bool has_plus = text.size() > 1 && text[0] == '+' && text[1] != '-';
  return has_plus ? text.substr(1) : text;
}

/// Where the text of a line begins: behind the name in a list, else where the line itself does.
std::size_t text_column(std::string_view line, std::size_t description_column) {
  const std::size_t begin = line.find_first_not_of(' ');
  const bool is_in_list = begin > 0 && line.size() > description_column && line[description_column] != ' ' &&
                          line[description_column - 1] == ' ';
  return is_in_list || begin >= description_column ? description_column : begin;
}

}  // namespace

std::string option_name(const OptionSpec& option) {
  const std::size_t comma = option.names.rfind(',');
  return comma == std::string::npos ? option.names : option.names.substr(comma + 1);
}

void read_number(const OptionSpec& option, const std::string& written, std::int64_t& target) {
  read(option, written, parse_int64(without_plus(written)), true, target);
}

void read_number(const OptionSpec& option, const std::string& written, double& target) {
  read(option, written, parse_double(without_plus(written)), false, target);
}

void refuse_option(CommandSpec& command, std::string_view name, const std::string& why) {
  const auto found = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const OptionSpec& option) { return option_name(option) == name; });
  FT_CHECK(found != command.options.end(), name);
  found->refusal = why;
}

std::string wrapped_help(const std::string& text, std::size_t description_column) {
  std::string result;
  for (std::string_view line : split(text, '\n')) {
    const bool is_command = trim(line).starts_with("foretoken ");
    // A command keeps two columns for the backslash.
    const std::size_t room = is_command ? kColumnsMax - 2 : kColumnsMax;
    const std::size_t indent = is_command ? 6 : text_column(line, description_column);
    std::string head;
    while (head.size() + line.size() > kColumnsMax) {
      const std::size_t cut = line.rfind(' ', room - head.size());
      // A word longer than the line stands alone.
      if (cut == std::string_view::npos || line.find_first_not_of(' ') > cut) break;
      result += head + std::string(line.substr(0, cut)) + (is_command ? " \\\n" : "\n");
      line.remove_prefix(cut + 1);
      head.assign(indent, ' ');
    }
    result += head + std::string(line) + "\n";
  }
  result.pop_back();
  return result;
}

}  // namespace foretoken

#include "sim/base/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace foretoken {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

struct Unit {
  std::string_view name;
  double picoseconds;
};

// Longer names come first where one is the tail of another, so that "ms" is not read as "m" and "s".
constexpr std::array<Unit, 7> kUnits{{{"ps", 1.0},
                                      {"ns", 1e3},
                                      {"us", 1e6},
                                      {"ms", 1e9},
                                      {"s", kPicosecondsPerSecond},
                                      {"m", 60 * kPicosecondsPerSecond},
                                      {"h", 3600 * kPicosecondsPerSecond}}};

std::string fixed(double value, int decimals) {
  std::array<char, 400> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  return std::string(buffer.data(), result.ptr);
}

std::string scientific(double value, int decimals) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                    std::chars_format::scientific, decimals);
  return std::string(buffer.data(), result.ptr);
}

std::string two_digits(std::int64_t value) { return (value < 10 ? "0" : "") + std::to_string(value); }

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_text(double value) {
  std::array<char, 64> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return std::string(buffer.data(), result.ptr);
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return to_text(value);
  if (value == 0) return "0";
  // The exponent is taken after rounding to three digits, so that 9.996 becomes "10.0" and not "10.00".
  const std::string rounded = scientific(value, 2);
  const int exponent = std::atoi(rounded.c_str() + rounded.find('e') + 1);
  if (exponent < -4 || exponent > 14) return rounded;
  return fixed(value, exponent >= 2 ? 0 : 2 - exponent);
}

std::string with_commas(std::int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t first_digit = value < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;) text.insert(at -= 3, ",");
  return text;
}

std::optional<double> parse_double(std::string_view text) {
  const auto value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int64(std::string_view text) { return parse_whole<std::int64_t>(text); }

std::optional<std::int64_t> parse_duration_ps(std::string_view text) {
  text = trim(text);
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto count = parse_double(trim(text.substr(0, text.size() - unit.name.size())));
    if (!count) continue;
    const double picoseconds = *count * unit.picoseconds;
    if (*count < 0 || picoseconds >= 9.2e18) return std::nullopt;
    return std::llround(picoseconds);
  }
  return std::nullopt;
}

std::string duration_text(std::int64_t duration_ps) {
  if (duration_ps == 0) return "0 s";
  const std::string sign = duration_ps < 0 ? "-" : "";
  const double picoseconds = std::abs(static_cast<double>(duration_ps));
  // Limits lie half a printed digit below the next unit: 999.7 us is "1.00 ms", never "1000 us".
  for (std::size_t unit = 0; unit < 5; ++unit) {
    const double limit = unit < 4 ? 999.5 : 59.95;
    if (picoseconds >= limit * kUnits[unit].picoseconds) continue;
    const double count = picoseconds / kUnits[unit].picoseconds;
    return sign + (unit == 0 ? fixed(count, 0) : short_number(count)) + " " + std::string(kUnits[unit].name);
  }
  const std::int64_t seconds = std::llround(picoseconds / kPicosecondsPerSecond);
  if (seconds < 3600) return sign + std::to_string(seconds / 60) + "m" + two_digits(seconds % 60) + "s";
  const std::int64_t minutes = (seconds + 30) / 60;
  return sign + std::to_string(minutes / 60) + "h" + two_digits(minutes % 60) + "m";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string wrapped(std::string_view paragraph, std::size_t indent, std::size_t columns) {
  std::string text;
  std::string line(indent, ' ');
  for (const std::string_view word : split(paragraph, ' ')) {
    if (line.size() > indent && line.size() + 1 + word.size() > columns) {
      text += line + '\n';
      line.assign(indent, ' ');
    }
    if (line.size() > indent) line += ' ';
    line += word;
  }
  return text + line + '\n';
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace foretoken

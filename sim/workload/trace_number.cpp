#include "sim/workload/trace_number.hpp"

#include <array>
#include <cmath>

#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kSecondsMax = 9'200'000'000;
constexpr std::int64_t kBeforeOverflow = 900'000'000'000'000'000;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr std::int64_t power_of_ten(int exponent) {
  std::int64_t value = 1;
  for (int i = 0; i < exponent; ++i) value *= 10;
  return value;
}

/// `count` digits at the front of `text` as a number; -1 when they are not there.
int take_digits(std::string_view& text, int count) {
  int value = 0;
  if (static_cast<int>(text.size()) < count) return -1;
  for (int i = 0; i < count; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(static_cast<std::size_t>(count));
  return value;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

/// Digits after a point as nanoseconds, rounded half up; -1 when there are none or more than twelve.
std::int64_t take_fraction_ns(std::string_view& text) {
  std::int64_t value = 0;
  int digits = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1)) {
    if (++digits > 12) return -1;
    value = value * 10 + (text.front() - '0');
  }
  if (digits == 0) return -1;
  if (digits <= 9) return value * power_of_ten(9 - digits);
  const std::int64_t divisor = power_of_ten(digits - 9);
  return (value + divisor / 2) / divisor;
}

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in(int year, int month) {
  constexpr std::array<int, 12> days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return days[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

std::int64_t days_since_1970(int year, int month, int day) {
  std::int64_t days = std::int64_t{365} * (year - 1970);
  const auto leaps = [](int y) { return y / 4 - y / 100 + y / 400; };
  days += leaps(year - 1) - leaps(1969);
  for (int m = 1; m < month; ++m) days += days_in(year, m);
  return days + day - 1;
}

/// `Z`, `+HH:MM` or nothing, as seconds east of UTC; nothing when malformed.
std::optional<std::int64_t> parse_zone(std::string_view text) {
  if (text.empty() || text == "Z") return 0;
  const std::int64_t sign = text.front() == '-' ? -1 : 1;
  if (text.front() != '-' && text.front() != '+') return std::nullopt;
  text.remove_prefix(1);
  const int hours = take_digits(text, 2);
  take(text, ':');
  const int minutes = take_digits(text, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || !text.empty()) return std::nullopt;
  return sign * (hours * 3600 + minutes * 60);
}

}  // namespace

std::optional<std::int64_t> parse_decimal_ns(std::string_view text, int exponent) {
  std::int64_t value = 0;
  int scale = exponent + 9;
  bool any = false;
  bool in_fraction = false;
  for (const char c : text) {
    if (c == '.' && !in_fraction) {
      in_fraction = true;
    } else if (is_digit(c)) {
      any = true;
      if (in_fraction && scale <= 0) {
        // Below a nanosecond: the first such digit decides the rounding, the others change nothing.
        if (scale-- == 0 && c >= '5') ++value;
        continue;
      }
      if (value > kBeforeOverflow) return std::nullopt;
      value = value * 10 + (c - '0');
      if (in_fraction) --scale;
    } else {
      // Exponents and the like; "nan" and "inf" are not finite and end here too.
      const auto number = parse_double(text);
      return number ? seconds_to_ns(*number * std::pow(10.0, exponent)) : std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  if (scale > 0) {
    if (value > kSecondsMax * kNanosecondsPerSecond / power_of_ten(scale)) return std::nullopt;
    value *= power_of_ten(scale);
  }
  return value;
}

std::optional<std::int64_t> parse_wall_time_ns(std::string_view text) {
  const int year = take_digits(text, 4);
  if (year < 1970 || year > 2261 || !take(text, '-')) return std::nullopt;
  const int month = take_digits(text, 2);
  if (month < 1 || month > 12 || !take(text, '-')) return std::nullopt;
  const int day = take_digits(text, 2);
  if (day < 1 || day > days_in(year, month)) return std::nullopt;
  if (!take(text, ' ') && !take(text, 'T')) return std::nullopt;
  const int hour = take_digits(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const int minute = take_digits(text, 2);
  if (minute < 0 || minute > 59 || !take(text, ':')) return std::nullopt;
  const int second = take_digits(text, 2);
  if (second < 0 || second > 60) return std::nullopt;
  std::int64_t fraction_ns = 0;
  if (take(text, '.')) fraction_ns = take_fraction_ns(text);
  const auto zone = parse_zone(text);
  if (fraction_ns < 0 || !zone) return std::nullopt;
  const std::int64_t since_midnight = hour * 3600 + minute * 60 + second - *zone;
  return (days_since_1970(year, month, day) * 86400 + since_midnight) * kNanosecondsPerSecond + fraction_ns;
}

std::optional<std::int64_t> seconds_to_ns(double seconds) {
  if (!(seconds >= 0.0 && seconds < static_cast<double>(kSecondsMax))) return std::nullopt;
  const double whole = std::floor(seconds);
  return static_cast<std::int64_t>(whole) * kNanosecondsPerSecond + std::llround((seconds - whole) * 1e9);
}

}  // namespace foretoken

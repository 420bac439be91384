#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace foretoken {

/// A decimal number of units of 10^exponent seconds in whole nanoseconds, rounded half up; digits are read
/// one by one, so that no digit is lost to binary fractions. Nothing for other text, negative values and more
/// than 292 years.
std::optional<std::int64_t> parse_decimal_ns(std::string_view text, int exponent);
/// `YYYY-MM-DD HH:MM:SS[.f...][Z|+HH:MM]` (a `T` for the blank, too) in nanoseconds since 1970; without a
/// zone it is taken as UTC. At most 12 fractional digits. Nothing for other text and dates outside 1970 to
/// 2261.
std::optional<std::int64_t> parse_wall_time_ns(std::string_view text);
/// Seconds as nanoseconds; nothing for negative values and more than 292 years. The whole part is split off
/// first, which keeps nanoseconds exact for 46 days.
std::optional<std::int64_t> seconds_to_ns(double seconds);

}  // namespace foretoken

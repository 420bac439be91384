#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Shortest text that reads back as the same double.
std::string to_text(double value);
/// A double with three or four significant digits, as tables print it ("0.0123", "4.71", "312", "17500");
/// thousands are not separated.
std::string short_number(double value);
/// A whole number with commas between thousands.
std::string with_commas(std::int64_t value);
/// The whole of `text` as a number; nothing for anything else (empty, trailing characters, out of range, not
/// finite).
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int64(std::string_view text);
/// A duration with its mandatory unit (ps, ns, us, ms, s, m, h) in integer picoseconds; nothing when
/// malformed.
std::optional<std::int64_t> parse_duration_ps(std::string_view text);
/// A duration in the unit that suits it: "312 ms", "4.71 s", "58m22s".
std::string duration_text(std::int64_t duration_ps);
/// Pieces between separators; an empty text gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
/// A paragraph broken at blanks into lines of at most `columns`, each behind `indent` blanks and ended by a
/// line feed. A word longer than a line stands alone.
std::string wrapped(std::string_view paragraph, std::size_t indent, std::size_t columns);
/// Without blanks at both ends.
std::string_view trim(std::string_view text);

}  // namespace foretoken

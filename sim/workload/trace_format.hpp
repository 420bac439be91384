#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

/// The formats that can be read. `detect` looks at the first rows and refuses what it does not know.
enum class TraceFormat : std::uint8_t { detect, azure, burstgpt, mooncake, bailian, canonical, csv };

/// What becomes of a row that asks for no output tokens: `by_format` follows TraceFormatFacts.
enum class ZeroOutput : std::uint8_t { by_format, drop, keep };

/// The properties in which formats differ and which a reader must not guess.
struct TraceFormatFacts {
  TraceFormat format;
  /// Name in `--format` and in reports.
  std::string_view name;
  /// How arrivals are written, for people.
  std::string_view time_unit;
  /// Tokens in a prefix block; 0 when the format has no prefix data or says it row by row.
  std::int32_t block_tokens;
  /// Whether rows can carry prefix hashes.
  bool has_prefixes;
  /// Time 0 is the first row rather than the clock's own zero.
  bool starts_at_first_row;
  /// Zero output means an embedding (kept) rather than a failure (dropped and counted).
  bool keeps_zero_output;
};

/// The facts of a format other than `detect`.
const TraceFormatFacts& facts(TraceFormat format);
/// The format of that name ("detect" too); a UsageError with the list of names for any other.
TraceFormat trace_format(std::string_view name);

/// A column of a plain CSV file: our name with its unit (`arrival_ms`) and the name in the file.
using ColumnName = std::pair<std::string, std::string>;
/// `ours=theirs,ours=theirs` as a mapping; a UsageError where it is not one.
std::vector<ColumnName> parse_columns(std::string_view text);

/// The format of a text that starts with this line; an InputError at `name` that lists what was looked for
/// when it is none of them.
TraceFormat detect_format(std::string_view first_line, std::string_view name);

}  // namespace foretoken

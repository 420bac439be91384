#include "sim/workload/trace_format.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::array<TraceFormatFacts, 6> kFacts{{
    {TraceFormat::azure, "azure", "wall clock, 100 ns", 0, false, true, false},
    {TraceFormat::burstgpt, "burstgpt", "seconds", 0, false, true, false},
    {TraceFormat::mooncake, "mooncake", "milliseconds", 512, true, true, false},
    {TraceFormat::bailian, "bailian", "seconds", 16, true, true, false},
    {TraceFormat::canonical, "canonical", "seconds", 0, true, false, true},
    {TraceFormat::csv, "csv", "the unit of their column", 0, false, true, false},
}};

bool has_all(std::string_view header, std::initializer_list<std::string_view> names) {
  const auto columns = split(header, ',');
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
    return std::any_of(columns.begin(), columns.end(),
                       [&](std::string_view column) { return trim(column) == name; });
  });
}

bool has_members(const Json& row, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view n) { return row.find(n) != nullptr; });
}

std::string shown(std::string_view line) {
  constexpr std::size_t length_max = 60;
  std::string text = "\"" + std::string(line.substr(0, length_max));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return text + (line.size() > length_max ? "...\"" : "\"");
}

TraceFormat detect_json(std::string_view line, std::string_view name) {
  const Json row = Json::parse_line(line, name, 1);
  if (has_members(row, {"foretoken_trace"})) return TraceFormat::canonical;
  if (has_members(row, {"chat_id", "timestamp", "input_length"})) return TraceFormat::bailian;
  if (has_members(row, {"timestamp", "input_length", "hash_ids"})) return TraceFormat::mooncake;
  if (has_members(row, {"input_tokens"}) && (row.find("arrival_s") || row.find("after"))) {
    return TraceFormat::canonical;
  }
  throw input_error(
      std::string(name) + ":1",
      "a row of a known JSONL trace: mooncake (timestamp, input_length, hash_ids), bailian (chat_id, "
      "timestamp, input_length) or canonical (foretoken_trace, or arrival_s and input_tokens)",
      shown(line) + "; --format says what it is");
}

}  // namespace

const TraceFormatFacts& facts(TraceFormat format) {
  FT_CHECK(format != TraceFormat::detect);
  return kFacts[static_cast<std::size_t>(format) - 1];
}

TraceFormat trace_format(std::string_view name) {
  std::string names = "detect";
  if (name == names) return TraceFormat::detect;
  for (const TraceFormatFacts& row : kFacts) {
    if (name == row.name) return row.format;
    names.append(", ").append(row.name);
  }
  throw UsageError("--format: expected one of " + names + ", found \"" + std::string(name) + "\"");
}

std::vector<ColumnName> parse_columns(std::string_view text) {
  std::vector<ColumnName> columns;
  for (const std::string_view pair : split(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size()) {
      throw UsageError(
          "--columns: expected ours=theirs,..., such as arrival_s=ts,input_tokens=prompt; found \"" +
          std::string(pair) + "\"");
    }
    columns.emplace_back(trim(pair.substr(0, equals)), trim(pair.substr(equals + 1)));
  }
  return columns;
}

TraceFormat detect_format(std::string_view first_line, std::string_view name) {
  const std::string_view line = trim(first_line);
  if (line.starts_with('{')) return detect_json(line, name);
  if (has_all(line, {"TIMESTAMP", "ContextTokens", "GeneratedTokens"})) return TraceFormat::azure;
  if (has_all(line, {"Timestamp", "Request tokens", "Response tokens"})) return TraceFormat::burstgpt;
  // What looks like a header of names is a plain CSV file; its parser then says which column is missing.
  const auto columns = split(line, ',');
  const bool named =
      columns.size() > 1 && std::none_of(columns.begin(), columns.end(), [](std::string_view c) {
        return trim(c).empty() || parse_double(trim(c));
      });
  if (named) return TraceFormat::csv;
  throw input_error(
      std::string(name) + ":1",
      "the first line of a known trace: a CSV header (azure, burstgpt, or named columns such as "
      "arrival_s,input_tokens,output_tokens) or a JSON object (mooncake, bailian, canonical)",
      shown(line) + "; --format says what it is");
}

}  // namespace foretoken

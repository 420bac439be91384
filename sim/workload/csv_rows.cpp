#include <algorithm>
#include <array>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"
#include "sim/workload/lengths.hpp"
#include "sim/workload/row_parser.hpp"
#include "sim/workload/trace_number.hpp"

namespace foretoken {
namespace {

/// What a column means.
enum class Field : std::uint8_t {
  ignored,
  wall_time,
  arrival,
  input,
  output,
  max_new,
  priority,
  turn,
  id,
  session,
  tenant,
  slo_class,
  source,
  model,
  patience,
  cancel_after,
};

/// A column name with its meaning; `exponent` is the power of ten of its unit in seconds.
struct Known {
  std::string_view name;
  Field field;
  int exponent = 0;
};

constexpr std::array kAzure{Known{"TIMESTAMP", Field::wall_time}, Known{"ContextTokens", Field::input},
                            Known{"GeneratedTokens", Field::output}};
// By header and never by index: BurstGPT 3 inserts Session ID and Elapsed time after Timestamp.
constexpr std::array kBurstGpt{Known{"Timestamp", Field::arrival},      Known{"Request tokens", Field::input},
                               Known{"Response tokens", Field::output}, Known{"Model", Field::model},
                               Known{"Log Type", Field::source},        Known{"Session ID", Field::session}};
constexpr std::array kPlain{Known{"input_tokens", Field::input},
                            Known{"prompt_tokens", Field::input},
                            Known{"input_length", Field::input},
                            Known{"output_tokens", Field::output},
                            Known{"completion_tokens", Field::output},
                            Known{"output_length", Field::output},
                            Known{"max_new_tokens", Field::max_new},
                            Known{"max_tokens", Field::max_new},
                            Known{"priority", Field::priority},
                            Known{"turn", Field::turn},
                            Known{"id", Field::id},
                            Known{"request_id", Field::id},
                            Known{"session", Field::session},
                            Known{"session_id", Field::session},
                            Known{"tenant", Field::tenant},
                            Known{"slo_class", Field::slo_class},
                            Known{"source", Field::source},
                            Known{"model", Field::model}};
constexpr std::array kTimes{Known{"arrival", Field::arrival}, Known{"arrival_time", Field::arrival},
                            Known{"timestamp", Field::arrival}, Known{"patience", Field::patience},
                            Known{"cancel_after", Field::cancel_after}};
constexpr std::array kUnits{Known{"_s", Field::ignored, 0}, Known{"_ms", Field::ignored, -3},
                            Known{"_us", Field::ignored, -6}, Known{"_ns", Field::ignored, -9}};

template <class Table>
std::optional<Known> find(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Known& k) { return k.name == name; });
  return found == table.end() ? std::nullopt : std::optional<Known>(*found);
}

/// The meaning of a plain column; times are known only with their unit.
std::optional<Known> plain_column(std::string_view name) {
  if (const auto known = find(kPlain, name)) return known;
  for (const Known& unit : kUnits) {
    if (!name.ends_with(unit.name)) continue;
    if (auto known = find(kTimes, name.substr(0, name.size() - unit.name.size()))) {
      known->exponent = unit.exponent;
      return known;
    }
  }
  return std::nullopt;
}

class CsvRows final : public RowParser {
 public:
  CsvRows(TraceFormat format, const std::vector<ColumnName>& columns, TraceInfo& info)
      : format_(format), mapping_(columns), info_(info) {}

  bool parse(std::string_view line, std::int64_t number, TraceRecord& record) override {
    number_ = number;
    split_fields(line);
    if (columns_.empty()) {
      read_header();
      return false;
    }
    if (fields_.size() != columns_.size()) {
      fail(std::to_string(columns_.size()) + " columns as in the header", std::to_string(fields_.size()));
    }
    for (std::size_t i = 0; i < columns_.size(); ++i) read_field(columns_[i], fields_[i], record);
    return true;
  }

 private:
  /// Fields of a line; a field in double quotes may hold commas, and two quotes there stand for one.
  void split_fields(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
    for (;;) {
      if (line.starts_with('"')) {
        fields_.push_back(take_quoted(line));
      } else {
        const std::size_t end = std::min(line.find(','), line.size());
        fields_.push_back(trim(line.substr(0, end)));
        line.remove_prefix(end);
      }
      if (line.empty()) return;
      line.remove_prefix(1);
    }
  }

  std::string_view take_quoted(std::string_view& line) {
    auto text = std::make_unique<std::string>();
    std::size_t at = 1;
    for (;; ++at) {
      if (at >= line.size()) fail("a closing quote", "the end of the line");
      if (line[at] == '"') {
        if (at + 1 >= line.size() || line[at + 1] != '"') break;
        ++at;
      }
      text->push_back(line[at]);
    }
    line.remove_prefix(at + 1);
    if (!line.empty() && line.front() != ',')
      fail("a comma behind the closing quote", quoted(line.substr(0, 1)));
    unquoted_.push_back(std::move(text));
    return *unquoted_.back();
  }

  std::optional<Known> meaning(std::string_view column) const {
    if (format_ == TraceFormat::azure) return find(kAzure, column);
    if (format_ == TraceFormat::burstgpt) return find(kBurstGpt, column);
    for (const auto& [ours, theirs] : mapping_) {
      if (theirs == column) return plain_column(ours);
    }
    return plain_column(column);
  }

  void read_header() {
    for (const auto& [ours, theirs] : mapping_) {
      if (!plain_column(ours)) {
        throw UsageError(
            "--columns: expected a name such as arrival_s, arrival_ms, input_tokens or output_tokens, "
            "found " +
            quoted(ours));
      }
      if (std::find(fields_.begin(), fields_.end(), theirs) == fields_.end()) {
        fail("a column " + quoted(theirs) + " for " + ours, header_text());
      }
    }
    for (const std::string_view name : fields_) {
      const auto known = meaning(name);
      if (!known) info_.ignored_columns.emplace_back(name);
      if (known && has(known->field)) fail("one column for each meaning", "a second one, " + quoted(name));
      columns_.push_back(known.value_or(Known{"", Field::ignored}));
    }
    require(Field::arrival, Field::wall_time,
            "a column for arrivals with its unit in the name (arrival_s, "
            "arrival_ms, timestamp_s, ...; --columns arrival_s=NAME says which one it is)");
    require(Field::input, Field::input, "a column input_tokens (or prompt_tokens, input_length)");
    require(Field::output, Field::output, "a column output_tokens (or completion_tokens, output_length)");
  }

  bool has(Field field) const {
    return std::any_of(columns_.begin(), columns_.end(), [&](const Known& k) { return k.field == field; });
  }

  void require(Field field, Field other, std::string_view expected) const {
    if (!has(field) && !has(other)) fail(expected, header_text());
  }

  void read_field(const Known& column, std::string_view text, TraceRecord& record) const {
    switch (column.field) {
      case Field::ignored: return;
      case Field::wall_time: {
        const auto time = parse_wall_time_ns(text);
        if (!time) fail("a time YYYY-MM-DD HH:MM:SS.fffffff", quoted(text));
        record.arrival_ns = *time;
        return;
      }
      case Field::arrival: record.arrival_ns = time_ns(column, text); return;
      case Field::input: record.input_tokens = count("input tokens", text, 0); return;
      case Field::output: record.output_tokens = count("output tokens", text, 0); return;
      case Field::max_new:
        record.max_new_tokens = text.empty() ? -1 : count("max_new_tokens", text, 0);
        return;
      case Field::priority:
        record.priority = text.empty() ? 0 : count("a priority", text, -kTokensMax);
        return;
      case Field::turn: record.turn = text.empty() ? 0 : count("a turn", text, 0); return;
      case Field::id: record.id = text; return;
      case Field::session: record.session = text; return;
      case Field::tenant: record.tenant = text; return;
      case Field::slo_class: record.slo_class = text; return;
      case Field::source: record.source = text; return;
      case Field::model: record.model = text; return;
      case Field::patience: record.patience = wait(column, text); return;
      case Field::cancel_after: record.cancel_after = wait(column, text); return;
    }
  }

  std::int64_t time_ns(const Known& column, std::string_view text) const {
    const auto time = parse_decimal_ns(text, column.exponent);
    if (!time) fail("a number that is not negative, in the unit of the column", quoted(text));
    return *time;
  }

  Duration wait(const Known& column, std::string_view text) const {
    if (text.empty()) return kForever;
    const std::int64_t ns = time_ns(column, text);
    return ns > kForever.count() / 1000 ? kForever : Duration(ns * 1000);
  }

  std::int32_t count(std::string_view what, std::string_view text, std::int64_t low) const {
    auto value = parse_int64(text);
    // Data frames that once held a missing value write whole numbers as "18.0".
    if (!value && text.ends_with(".0")) value = parse_int64(text.substr(0, text.size() - 2));
    if (!value || *value < low || *value > kTokensMax) {
      fail(std::string(what) + " as a whole number in [" + std::to_string(low) + ", " +
               std::to_string(kTokensMax) + "]",
           quoted(text));
    }
    return static_cast<std::int32_t>(*value);
  }

  std::string header_text() const {
    std::string text = "the columns";
    for (const std::string_view field : fields_) {
      text += text.size() == 11 ? " " : ", ";
      text += quoted(field);
      if (text.size() > 200) return text + ", ...";
    }
    return text;
  }

  static std::string quoted(std::string_view text) {
    return "\"" + std::string(text.substr(0, 80)) + (text.size() > 80 ? "...\"" : "\"");
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw input_error(info_.path + ":" + std::to_string(number_), expected, found);
  }

  TraceFormat format_;
  std::vector<ColumnName> mapping_;
  TraceInfo& info_;
  std::int64_t number_ = 0;
  std::vector<Known> columns_;
  std::vector<std::string_view> fields_;
  std::vector<std::unique_ptr<std::string>> unquoted_;
};

}  // namespace

std::unique_ptr<RowParser> make_csv_parser(TraceFormat format, const std::vector<ColumnName>& columns,
                                           TraceInfo& info) {
  return std::make_unique<CsvRows>(format, columns, info);
}

}  // namespace foretoken

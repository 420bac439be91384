#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.hpp"

namespace foretoken {

/// What kind of value a key of a scenario takes.
enum class ValueKind : std::uint8_t { boolean, integer, number, text, choice };

/// One key of a scenario's section: how it is read, printed and documented. Everything that knows a key reads
/// this row.
struct Field {
  std::string_view name;  ///< The key.
  ValueKind kind;         ///< Type of its value.
  std::string_view unit;  ///< Unit of a number, "" for a plain one.
  double low;             ///< Least number allowed.
  double high;            ///< Greatest number allowed.
  std::string_view
      choices;  ///< Words allowed, separated by '|'; for a boolean: the only one allowed, if one is.
  std::string_view fallback;  ///< Default: a word, or JSON text; "null" where it is derived or absent, which
                              ///< a file may write too; "" for none.
  std::string_view description;  ///< One phrase for tables and the schema.
};

/// A whole number.
constexpr Field integer_field(std::string_view name, std::string_view unit, double low, double high,
                              std::string_view fallback, std::string_view description) {
  return {name, ValueKind::integer, unit, low, high, "", fallback, description};
}
/// A real number.
constexpr Field number_field(std::string_view name, std::string_view unit, double low, double high,
                             std::string_view fallback, std::string_view description) {
  return {name, ValueKind::number, unit, low, high, "", fallback, description};
}
/// True or false.
constexpr Field boolean_field(std::string_view name, std::string_view fallback,
                              std::string_view description) {
  return {name, ValueKind::boolean, "", 0, 0, "", fallback, description};
}
/// One word of several.
constexpr Field choice_field(std::string_view name, std::string_view choices, std::string_view fallback,
                             std::string_view description) {
  return {name, ValueKind::choice, "", 0, 0, choices, fallback, description};
}
/// Any text.
constexpr Field text_field(std::string_view name, std::string_view fallback, std::string_view description) {
  return {name, ValueKind::text, "", 0, 0, "", fallback, description};
}

/// The default of a field.
Json field_default(const Field& field);
/// The member of that name, its default when absent. A wrong type, a number out of range or an unknown word
/// is an InputError with its place.
Json read_field(JsonReader& reader, const Field& field);
/// Position of a word among the field's choices; the word is known to be one of them.
int choice_index(std::string_view choices, std::string_view word);
/// Word at a position among choices.
std::string_view choice_name(std::string_view choices, int position);
/// The values allowed, as a person reads them: "1..1024 tokens", "fcfs, priority".
std::string field_range(const Field& field);
/// JSON Schema of the field's value.
Json field_schema(const Field& field);

}  // namespace foretoken

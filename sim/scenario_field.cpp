#include "sim/scenario_field.hpp"

#include <cmath>
#include <limits>

#include "sim/base/check.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

std::string bound_text(double value) {
  if (std::abs(value) < 9e15 && std::trunc(value) == value)
    return std::to_string(static_cast<std::int64_t>(value));
  return to_text(value);
}

bool has_upper_bound(const Field& field) {
  return field.high < static_cast<double>(std::numeric_limits<std::int32_t>::max()) &&
         std::isfinite(field.high);
}

Json read_choice(const JsonReader& reader, const Field& field, const Json& value) {
  std::string expected = "one of ";
  std::vector<std::string> candidates;
  for (const std::string_view word : split(field.choices, '|')) {
    if (value.is_string() && value.as_string() == word) return value;
    if (!candidates.empty()) expected += ", ";
    expected.append("\"").append(word).append("\"");
    candidates.emplace_back(word);
  }
  std::string found = value.describe();
  if (value.is_string()) {
    const std::string near = nearest(value.as_string(), candidates);
    if (!near.empty()) found += " (did you mean \"" + near + "\"?)";
  }
  reader.fail(field.name, expected, found);
}

Json fixed_number(const Field& field, double value) {
  if (field.kind == ValueKind::integer) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace

Json field_default(const Field& field) {
  const bool is_word = field.kind == ValueKind::choice || field.kind == ValueKind::text;
  if (is_word && field.fallback != "null") return field.fallback;
  const Json value = Json::parse(field.fallback, field.name);
  return field.kind == ValueKind::number && value.is_number() ? Json(value.as_double()) : value;
}

Json read_field(JsonReader& reader, const Field& field) {
  const Json* value = reader.get(field.name);
  if (value == nullptr) return field_default(field);
  if (value->is_null()) {
    if (field.fallback != "null") reader.fail(field.name, field_range(field), "null");
    return Json();
  }
  switch (field.kind) {
    case ValueKind::boolean: {
      const bool is_on = reader.boolean(field.name, false);
      if (!field.choices.empty() && field.choices != (is_on ? "true" : "false"))
        reader.fail(field.name, field_range(field), is_on ? "true" : "false");
      return is_on;
    }
    case ValueKind::integer:
      return reader.integer(field.name, static_cast<std::int64_t>(field.low),
                            static_cast<std::int64_t>(field.high));
    case ValueKind::number: return reader.number(field.name, field.low, field.high);
    case ValueKind::text: return reader.string(field.name);
    case ValueKind::choice: return read_choice(reader, field, *value);
  }
  FT_CHECK(false);
}

int choice_index(std::string_view choices, std::string_view word) {
  int position = 0;
  for (const std::string_view name : split(choices, '|')) {
    if (name == word) return position;
    ++position;
  }
  FT_CHECK(false, choices, word);
}

std::string_view choice_name(std::string_view choices, int position) {
  const std::vector<std::string_view> names = split(choices, '|');
  FT_CHECK(position >= 0 && static_cast<std::size_t>(position) < names.size(), position);
  return names[static_cast<std::size_t>(position)];
}

std::string field_range(const Field& field) {
  switch (field.kind) {
    case ValueKind::boolean:
      return field.choices.empty() ? "true, false" : "only " + std::string(field.choices);
    case ValueKind::text: return "text";
    case ValueKind::choice: {
      std::string text;
      for (const std::string_view word : split(field.choices, '|')) {
        if (!text.empty()) text += ", ";
        text += word;
      }
      return text;
    }
    default: break;
  }
  std::string text = bound_text(field.low);
  if (field.high == field.low) return "only " + text;
  if (has_upper_bound(field))
    text += ".." + bound_text(field.high);
  else
    text = "at least " + text;
  if (!field.unit.empty()) text.append(" ").append(field.unit);
  return text;
}

Json field_schema(const Field& field) {
  Json schema;
  std::string description(field.description);
  if (!field.unit.empty()) description.append(" (").append(field.unit).append(")");
  description += ".";
  schema.set("description", description);
  const bool nullable = field.fallback == "null";
  std::string_view type = "string";
  if (field.kind == ValueKind::boolean) type = "boolean";
  if (field.kind == ValueKind::integer) type = "integer";
  if (field.kind == ValueKind::number) type = "number";
  if (field.kind == ValueKind::choice) {
    Json words = Json::array();
    for (const std::string_view word : split(field.choices, '|')) words.push_back(word);
    if (nullable) words.push_back(nullptr);
    schema.set("enum", words);
  } else if (nullable) {
    schema.set("type", Json::array({type, "null"}));
  } else {
    schema.set("type", type);
  }
  if (field.kind == ValueKind::integer || field.kind == ValueKind::number) {
    schema.set("minimum", fixed_number(field, field.low));
    if (has_upper_bound(field)) schema.set("maximum", fixed_number(field, field.high));
  }
  if (!nullable && !field.fallback.empty()) schema.set("default", field_default(field));
  return schema;
}

}  // namespace foretoken

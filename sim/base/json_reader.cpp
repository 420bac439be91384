#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

const Json kNull;

/// Edit distance with swaps of neighbours counted once (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~')
      text += "~0";
    else if (c == '/')
      text += "~1";
    else
      text += c;
  }
  return text;
}

std::string in_quotes(std::string_view text) { return Json(text).dump(); }

std::string number_range(std::string_view kind, const std::string& low, const std::string& high) {
  return std::string(kind) + " in [" + low + ", " + high + "]";
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kWordBytesMax = 100;
  if (word.size() > kWordBytesMax) return "";
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance || distance >= std::max(word.size(), candidate.size())) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

JsonReader::JsonReader(const Json& value, std::string name, std::string pointer)
    : value_(&value), name_(std::move(name)), pointer_(std::move(pointer)) {
  if (!value.is_object() && !value.is_null()) fail("", "an object", value.describe());
}

bool JsonReader::has(std::string_view key) const { return value_->find(key) != nullptr; }

const Json* JsonReader::get(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return value_->find(key);
}

const Json& JsonReader::require(std::string_view key) {
  const Json* value = get(key);
  if (value == nullptr) fail("", "a member " + in_quotes(key), "none");
  return *value;
}

JsonReader JsonReader::child(std::string_view key) {
  const Json* value = get(key);
  return JsonReader(value == nullptr ? kNull : *value, name_, pointer_ + "/" + escaped(key));
}

JsonReader JsonReader::element(std::string_view key, std::size_t index) {
  const Json::Array& array = require(key).as_array();
  FT_CHECK(index < array.size(), index, array.size());
  return JsonReader(array[index], name_, pointer_ + "/" + escaped(key) + "/" + std::to_string(index));
}

bool JsonReader::boolean(std::string_view key, bool fallback) {
  const Json* value = get(key);
  if (value == nullptr || value->is_null()) return fallback;
  if (!value->is_bool()) fail(key, "true or false", value->describe());
  return value->as_bool();
}

std::int64_t JsonReader::integer(std::string_view key, std::int64_t fallback, std::int64_t low,
                                 std::int64_t high) {
  const Json* value = get(key);
  return value == nullptr || value->is_null() ? fallback : integer(key, low, high);
}

std::int64_t JsonReader::integer(std::string_view key, std::int64_t low, std::int64_t high) {
  const Json& value = require(key);
  const std::string expected = number_range("an integer", std::to_string(low), std::to_string(high));
  if (!value.is_number()) fail(key, expected, value.describe());
  // Bounds are compared as doubles first: integers beyond 64 bits arrive as doubles.
  const double wide = value.as_double();
  const bool fits = std::trunc(wide) == wide && std::abs(wide) < 9.2e18;
  if (!fits || value.as_int64() < low || value.as_int64() > high) fail(key, expected, value.dump());
  return value.as_int64();
}

double JsonReader::number(std::string_view key, double fallback, double low, double high) {
  const Json* value = get(key);
  return value == nullptr || value->is_null() ? fallback : number(key, low, high);
}

double JsonReader::number(std::string_view key, double low, double high) {
  const Json& value = require(key);
  const std::string expected = number_range("a number", to_text(low), to_text(high));
  if (!value.is_number()) fail(key, expected, value.describe());
  if (!(value.as_double() >= low && value.as_double() <= high)) fail(key, expected, value.dump());
  return value.as_double();
}

std::string JsonReader::string(std::string_view key, std::string_view fallback) {
  const Json* value = get(key);
  return value == nullptr || value->is_null() ? std::string(fallback) : string(key);
}

std::string JsonReader::string(std::string_view key) {
  const Json& value = require(key);
  if (!value.is_string()) fail(key, "a string", value.describe());
  return value.as_string();
}

int JsonReader::choice(std::string_view key, std::initializer_list<std::string_view> names, int fallback) {
  const Json* value = get(key);
  if (value == nullptr || value->is_null()) return fallback;
  const std::string text = value->is_string() ? value->as_string() : "";
  std::string expected = "one of ";
  std::vector<std::string> candidates;
  int index = 0;
  for (const std::string_view name : names) {
    if (value->is_string() && text == name) return index;
    if (index++ > 0) expected += ", ";
    expected += in_quotes(name);
    candidates.emplace_back(name);
  }
  std::string found = value->describe();
  if (const std::string near = nearest(text, candidates); !near.empty()) {
    found += " (did you mean " + in_quotes(near) + "?)";
  }
  fail(key, expected, found);
}

std::string JsonReader::place(std::string_view key) const {
  const Json* member = key.empty() ? nullptr : value_->find(key);
  const int line = member != nullptr && member->line() > 0 ? member->line() : value_->line();
  std::string text = name_;
  if (line > 0) text += ":" + std::to_string(line);
  const std::string pointer = key.empty() ? pointer_ : pointer_ + "/" + escaped(key);
  return pointer.empty() ? text : text + ": " + pointer;
}

void JsonReader::fail(std::string_view key, std::string_view expected, std::string_view found) const {
  throw input_error(place(key), expected, found);
}

void JsonReader::finish() const {
  if (!value_->is_object()) return;
  for (const auto& [key, value] : value_->as_object()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string found = "the unknown key " + in_quotes(key);
    const std::string near = nearest(key, known_);
    if (!near.empty()) found += " (did you mean " + in_quotes(near) + "?)";
    std::string expected = "a known key";
    if (near.empty() && !known_.empty()) {
      expected = "one of";
      for (const std::string& known : known_)
        expected += (&known == &known_.front() ? " " : ", ") + in_quotes(known);
    }
    fail(key, expected, found);
  }
}

}  // namespace foretoken

#include "sim/workload/json_row.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/workload/trace_number.hpp"

namespace foretoken {
namespace {

int line_number(std::int64_t number) {
  return static_cast<int>(std::min<std::int64_t>(number, std::numeric_limits<int>::max()));
}

}  // namespace

JsonRow::JsonRow(std::string_view line, const std::string& path, std::int64_t number)
    : path_(path), number_(number), value_(Json::parse_line(line, path, line_number(number))) {
  if (!value_.is_object()) fail("", "an object", value_.describe());
}

std::int64_t JsonRow::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const Json* value = value_.find(key);
  if (value == nullptr) fail("", "a member \"" + std::string(key) + "\"", "none");
  return integer(*value, key, low, high);
}

std::int64_t JsonRow::integer(const Json& value, std::string_view key, std::int64_t low,
                              std::int64_t high) const {
  // Compared as a double first: integers beyond 64 bits arrive as doubles.
  const double wide = value.is_number() ? value.as_double() : 0.0;
  const bool whole = value.is_number() && std::trunc(wide) == wide && std::abs(wide) < 9.2e18;
  if (!whole || value.as_int64() < low || value.as_int64() > high) {
    fail(key, "a whole number in [" + std::to_string(low) + ", " + std::to_string(high) + "]", value.dump());
  }
  return value.as_int64();
}

std::int64_t JsonRow::seconds_ns(const Json& value, std::string_view key) const {
  const auto ns = value.is_number() ? seconds_to_ns(value.as_double()) : std::nullopt;
  if (!ns) fail(key, "a number of seconds that is not negative", value.dump());
  return *ns;
}

void JsonRow::text(const Json& value, std::string_view key, std::string& out) const {
  if (value.is_string()) {
    out = value.as_string();
  } else if (value.is_integer()) {
    out = value.dump();
  } else {
    fail(key, "a string", value.describe());
  }
}

void JsonRow::hashes(const Json& value, std::string_view key, std::vector<std::uint64_t>& out) const {
  if (!value.is_array()) fail(key, "an array of whole numbers", value.describe());
  out.clear();
  for (const Json& hash : value.as_array()) {
    const bool counts = hash.is_integer() && hash.as_double() >= 0.0;
    if (!counts) fail(key, "whole numbers that are not negative", hash.dump());
    out.push_back(hash.as_uint64());
  }
}

void JsonRow::fail(std::string_view key, std::string_view expected, std::string_view found) const {
  std::string place = path_ + ":" + std::to_string(number_);
  if (!key.empty()) place.append(": /").append(key);
  if (found.size() > 100) throw input_error(place, expected, std::string(found.substr(0, 100)) + "...");
  throw input_error(place, expected, found);
}

}  // namespace foretoken

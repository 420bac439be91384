#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.hpp"

namespace foretoken {

/// A JSONL row with its place in the file, for parsers that look members up by name.
class JsonRow {
 public:
  /// Parses the line; an InputError at file, line and column when it is not a JSON object.
  JsonRow(std::string_view line, const std::string& path, std::int64_t number);

  const Json& json() const { return value_; }
  /// The member of that name, or null.
  const Json* find(std::string_view key) const { return value_.find(key); }
  /// A whole number in [low, high] under a key that must be there.
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  /// The same for a value at hand; `key` names it in errors.
  std::int64_t integer(const Json& value, std::string_view key, std::int64_t low, std::int64_t high) const;
  /// Seconds in whole nanoseconds.
  std::int64_t seconds_ns(const Json& value, std::string_view key) const;
  /// A string, or a whole number as its digits: logs name requests and users either way.
  void text(const Json& value, std::string_view key, std::string& out) const;
  /// Whole numbers that are not negative.
  void hashes(const Json& value, std::string_view key, std::vector<std::uint64_t>& out) const;
  /// An error at a member.
  [[noreturn]] void fail(std::string_view key, std::string_view expected, std::string_view found) const;

 private:
  const std::string& path_;
  std::int64_t number_;
  Json value_;
};

/// Blocks of `block_tokens` that a prompt begins, the last one perhaps not full.
constexpr std::int64_t blocks_begun(std::int64_t tokens, std::int64_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace foretoken

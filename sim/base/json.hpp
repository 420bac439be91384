#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace foretoken {

/// One JSON value. Objects keep the order in which keys were written, so that output bytes are stable;
/// lookups are linear, which is right for documents of tens of keys. Each parsed value knows the line it
/// began on.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  /// Stored exactly; 64-bit hashes need the upper half.
  Json(std::uint64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  /// An object from pairs, in the order given.
  static Json object(std::initializer_list<Member> members = {});
  /// An array from values.
  static Json array(std::initializer_list<Json> values = {});

  bool is_null() const { return value_.index() == 0; }
  bool is_bool() const { return value_.index() == 1; }
  bool is_integer() const { return value_.index() == 2 || value_.index() == 3; }
  bool is_number() const { return is_integer() || value_.index() == 4; }
  bool is_string() const { return value_.index() == 5; }
  bool is_array() const { return value_.index() == 6; }
  bool is_object() const { return value_.index() == 7; }

  /// The value as the named type. The caller has tested the type; a wrong one is our bug (FT_CHECK).
  /// `as_double` takes integers too; `as_int64` takes doubles that hold an integer exactly.
  bool as_bool() const;
  std::int64_t as_int64() const;
  std::uint64_t as_uint64() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  Array& as_array();
  const Object& as_object() const;
  Object& as_object();

  /// The member of that name, or null when there is none or this is no object.
  const Json* find(std::string_view key) const;
  Json* find(std::string_view key);
  /// Sets or appends a member; turns a null value into an object.
  void set(std::string_view key, Json value);
  /// The member of that name, appended as null where missing; turns a null value into an object.
  Json& operator[](std::string_view key);
  /// Appends to an array; turns a null value into an array.
  void push_back(Json value);

  /// Line of the source text on which the value began, from 1; 0 when it was not parsed.
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }

  /// "null", "true", "an integer", "a number", "a string \"...\"", "an array", "an object": for error
  /// messages.
  std::string describe() const;
  /// JSON text; numbers by shortest round trip, `indent` < 0 for one line. Not-a-number and infinities print
  /// as null.
  std::string dump(int indent = -1) const;
  /// The same, appended to `out`.
  void dump_to(std::string& out, int indent = -1, int depth = 0) const;

  /// Parses one document. Comments (`//`, `/* */`) are accepted when `comments`. Malformed text, trailing
  /// text, duplicate keys, NUL bytes and nesting beyond 200 are an InputError that starts with
  /// `name:line:column`.
  static Json parse(std::string_view text, std::string_view name, bool comments = false);
  /// Parses a line of a JSONL file: `line` is the number to report.
  static Json parse_line(std::string_view text, std::string_view name, int line);
  /// Reads and parses a file; errors as `parse`, and a DeviceError or InputError when it cannot be read.
  static Json parse_file(const std::string& path, bool comments = false);

  friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }

 private:
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
  int line_ = 0;
};

/// Reads a line that is a flat object of plain ASCII texts, numbers and lists of whole numbers; nothing where
/// it is anything else. `Json::parse_line` tries it first: it says the same in a third of the
/// instructions.
std::optional<Json> read_plain_line(std::string_view text, int line);

/// Reads an object key by key and complains about what is missing, of a wrong type, out of range or unknown.
/// Every error names file, line and JSON pointer. Usage: read every key once, then call `finish`, which
/// refuses the keys nobody asked for with a suggestion of the nearest known one.
class JsonReader {
 public:
  /// `name` is the file; `pointer` the place of `value` in it. A null `value` reads as an empty object.
  JsonReader(const Json& value, std::string name, std::string pointer = "");

  /// Whether the member is there, be it null; does not mark the key as known.
  bool has(std::string_view key) const;
  /// The raw member; null when absent. Marks the key as known.
  const Json* get(std::string_view key);
  /// A required member.
  const Json& require(std::string_view key);
  /// A reader for a sub-object (empty when absent).
  JsonReader child(std::string_view key);
  /// A reader for an element of an array member; the caller has tested that it is one.
  JsonReader element(std::string_view key, std::size_t index);

  /// Typed members. The forms with a fallback return it when the key is absent or null. Numbers outside [low,
  /// high] are refused.
  bool boolean(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t low, std::int64_t high);
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high);
  double number(std::string_view key, double fallback, double low, double high);
  double number(std::string_view key, double low, double high);
  std::string string(std::string_view key, std::string_view fallback);
  std::string string(std::string_view key);
  /// Index of the member's text in `names`; `fallback` when absent. Anything else is refused with the list
  /// and the nearest name.
  int choice(std::string_view key, std::initializer_list<std::string_view> names, int fallback);

  /// An error at this object's member (or at the object itself for an empty key).
  [[noreturn]] void fail(std::string_view key, std::string_view expected, std::string_view found) const;
  /// `file:line: /pointer/key`.
  std::string place(std::string_view key) const;
  /// Refuses members that were never asked for.
  void finish() const;

 private:
  const Json* value_;
  std::string name_;
  std::string pointer_;
  std::vector<std::string> known_;
};

/// The candidate nearest to `word` by edit distance (at most a third of its length away), or "".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace foretoken

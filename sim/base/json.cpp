#include "sim/base/json.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kDepthMax = 200;
// Beyond this many members a set finds duplicate keys; below it a linear search is faster.
constexpr std::size_t kLinearMembersMax = 32;

/// Walks the text and leaves its position where the builder can see it: the parser's events carry none.
struct Cursor {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char& operator*() const { return *at; }
  Cursor& operator++() {
    *shared = ++at;
    return *this;
  }
  friend bool operator!=(const Cursor& a, const Cursor& b) { return a.at != b.at; }

  const char* at;
  const char** shared;
};

/// Builds a Json from the events of nlohmann's parser.
class Builder {
 public:
  Builder(std::string_view text, std::string_view name, int first_line)
      : text_(text), name_(name), first_line_(first_line), position_(text.data()), line_(first_line) {
    counted_ = position_;
  }

  const char** position() { return &position_; }
  Json take() { return std::move(root_); }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(std::int64_t value) { return add(Json(value)); }
  bool number_unsigned(std::uint64_t value) {
    return value <= std::uint64_t{INT64_MAX} ? add(Json(static_cast<std::int64_t>(value))) : add(Json(value));
  }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) {
    if (value.find('\0') != std::string::npos) refuse(here(), "expected text, found a NUL character");
    return add(Json(std::string_view(value)));
  }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return open(Json(Json::Object{})); }
  bool start_array(std::size_t) { return open(Json(Json::Array{})); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(const std::string& name) {
    Frame& frame = stack_.back();
    Json::Object& members = frame.value->as_object();
    if (is_duplicate(frame, members, name))
      refuse(here(), "expected distinct keys, found \"" + name + "\" twice");
    members.emplace_back(name, Json());
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) {
    // The last character read is where it went wrong; at the end of the text the count goes one beyond.
    const std::size_t offset =
        position > text_.size() ? text_.size() : std::max<std::size_t>(position, 1) - 1;
    const char* place = text_.data() + offset;
    // nlohmann's text is "[id] parse error at line L, column C: what"; the place is ours, the rest is good.
    std::string what = error.what();
    if (const auto column = what.find("column "); column != std::string::npos) {
      if (const auto colon = what.find(": ", column); colon != std::string::npos) what.erase(0, colon + 2);
    } else if (const auto bracket = what.find("] "); bracket != std::string::npos) {
      what.erase(0, bracket + 2);
    }
    refuse(place, what);
  }

  [[noreturn]] void refuse(const char* place, const std::string& what) const {
    const char* begin = text_.data();
    const auto line = first_line_ + std::count(begin, place, '\n');
    const char* line_begin = place;
    while (line_begin > begin && line_begin[-1] != '\n') --line_begin;
    throw InputError(std::string(name_) + ":" + std::to_string(line) + ":" +
                     std::to_string(place - line_begin + 1) + ": " + what);
  }

 private:
  struct Frame {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  /// The last character of the token at hand, or the one behind a number.
  const char* here() const { return position_ == text_.data() ? position_ : position_ - 1; }

  int line_here() {
    if (counted_ < here()) {
      line_ += static_cast<int>(std::count(counted_, here(), '\n'));
      counted_ = here();
    }
    return line_;
  }

  static bool is_duplicate(Frame& frame, const Json::Object& members, const std::string& name) {
    if (members.size() < kLinearMembersMax) {
      return std::any_of(members.begin(), members.end(),
                         [&](const auto& member) { return member.first == name; });
    }
    if (frame.keys.empty()) {
      for (const auto& member : members) frame.keys.insert(member.first);
    }
    return !frame.keys.insert(name).second;
  }

  Json* place(Json value) {
    value.set_line(line_here());
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back().value;
    Json& slot = parent.is_array() ? parent.as_array().emplace_back() : parent.as_object().back().second;
    slot = std::move(value);
    return &slot;
  }

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (stack_.size() >= kDepthMax) refuse(here(), "expected nesting of at most 200, found more");
    // Only the innermost container grows, so the addresses held in the stack stay valid.
    stack_.push_back({place(std::move(value)), {}});
    return true;
  }

  bool close() {
    stack_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string_view name_;
  int first_line_;
  const char* position_;
  const char* counted_;
  int line_;
  Json root_;
  std::vector<Frame> stack_;
};

Json parse_text(std::string_view text, std::string_view name, int first_line, bool comments) {
  if (text.empty()) text = std::string_view("", 0);
  Builder builder(text, name, first_line);
  // The lexer takes a NUL for the end of the text, which would hide what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    builder.refuse(text.data() + nul, "expected text, found a NUL byte");
  }
  const Cursor begin{text.data(), builder.position()};
  const Cursor end{text.data() + text.size(), builder.position()};
  const bool parsed =
      nlohmann::json::sax_parse(begin, end, &builder, nlohmann::json::input_format_t::json, true, comments);
  FT_CHECK(parsed);
  return builder.take();
}

constexpr double kInt64Bound = 9223372036854775808.0;

bool holds_int64(double value) {
  return value >= -kInt64Bound && value < kInt64Bound && std::trunc(value) == value;
}

}  // namespace

Json Json::object(std::initializer_list<Member> members) { return Json(Object(members)); }

Json Json::array(std::initializer_list<Json> values) { return Json(Array(values)); }

bool Json::as_bool() const {
  FT_CHECK(is_bool(), describe());
  return std::get<bool>(value_);
}

std::int64_t Json::as_int64() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const auto* value = std::get_if<double>(&value_);
  FT_CHECK(value != nullptr && holds_int64(*value), describe());
  return static_cast<std::int64_t>(*value);
}

std::uint64_t Json::as_uint64() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const std::int64_t value = as_int64();
  FT_CHECK(value >= 0, value);
  return static_cast<std::uint64_t>(value);
}

double Json::as_double() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  FT_CHECK(value_.index() == 3, describe());
  return static_cast<double>(std::get<std::uint64_t>(value_));
}

const std::string& Json::as_string() const {
  FT_CHECK(is_string(), describe());
  return std::get<std::string>(value_);
}

const Json::Array& Json::as_array() const {
  FT_CHECK(is_array(), describe());
  return std::get<Array>(value_);
}

Json::Array& Json::as_array() {
  FT_CHECK(is_array(), describe());
  return std::get<Array>(value_);
}

const Json::Object& Json::as_object() const {
  FT_CHECK(is_object(), describe());
  return std::get<Object>(value_);
}

Json::Object& Json::as_object() {
  FT_CHECK(is_object(), describe());
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  for (const Member& member : *members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json* Json::find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).find(key)); }

void Json::set(std::string_view key, Json value) { (*this)[key] = std::move(value); }

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  if (Json* found = find(key)) return *found;
  return as_object().emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  as_array().push_back(std::move(value));
}

Json Json::parse(std::string_view text, std::string_view name, bool comments) {
  return parse_text(text, name, 1, comments);
}

Json Json::parse_line(std::string_view text, std::string_view name, int line) {
  if (std::optional<Json> plain = read_plain_line(text, line)) return *std::move(plain);
  return parse_text(text, name, line, false);
}

Json Json::parse_file(const std::string& path, bool comments) {
  return parse(read_file(path), path == "-" ? "standard input" : path, comments);
}

}  // namespace foretoken

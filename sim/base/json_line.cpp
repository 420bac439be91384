// The common line of a trace, read without nlohmann's parser: a flat object of plain texts, numbers and lists
// of whole numbers. It reads what it is sure of and leaves everything else, all errors included, to the
// parser.
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/base/json.hpp"

namespace foretoken {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class PlainLine {
 public:
  PlainLine(std::string_view text, int line) : at_(text.data()), end_(at_ + text.size()), line_(line) {}

  std::optional<Json> read() {
    Json::Object members;
    if (!take('{')) return std::nullopt;
    do {
      std::string key;
      Json value;
      if (!text(key) || !take(':') || !read_value(value)) return std::nullopt;
      for (const Json::Member& member : members)
        if (member.first == key) return std::nullopt;
      members.emplace_back(std::move(key), std::move(value));
    } while (take(','));
    if (!take('}')) return std::nullopt;
    skip_blanks();
    if (at_ != end_) return std::nullopt;
    return lined(Json(std::move(members)));
  }

 private:
  Json lined(Json value) const {
    value.set_line(line_);
    return value;
  }

  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  /// Printable ASCII without escapes.
  bool text(std::string& out) {
    if (!take('"')) return false;
    const char* begin = at_;
    while (at_ != end_ && *at_ >= ' ' && *at_ < '\x7f' && *at_ != '"' && *at_ != '\\') ++at_;
    if (at_ == end_ || *at_ != '"') return false;
    out.assign(begin, at_++);
    return true;
  }

  bool read_value(Json& value) {
    skip_blanks();
    if (at_ == end_) return false;
    if (*at_ == '"') {
      std::string out;
      if (!text(out)) return false;
      value = lined(Json(std::move(out)));
      return true;
    }
    return *at_ == '[' ? read_list(value) : number(value);
  }

  bool read_list(Json& value) {
    Json::Array values;
    if (!take('[')) return false;
    do {
      skip_blanks();
      if (!number(values.emplace_back())) return false;
    } while (take(','));
    if (!take(']')) return false;
    value = lined(Json(std::move(values)));
    return true;
  }

  /// Not negative, without an exponent; up to 18 digits when whole.
  bool number(Json& value) {
    const char* begin = at_;
    std::int64_t whole = 0;
    while (at_ != end_ && is_digit(*at_) && at_ - begin < 18) whole = whole * 10 + (*at_++ - '0');
    const bool has_leading_zero = at_ - begin > 1 && *begin == '0';
    if (at_ == begin || at_ == end_ || is_digit(*at_) || has_leading_zero || *at_ == 'e' || *at_ == 'E')
      return false;
    if (*at_ != '.') {
      value = lined(Json(whole));
      return true;
    }
    const char* point = at_++;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    if (at_ == point + 1 || at_ == end_ || *at_ == 'e' || *at_ == 'E') return false;
    double part = 0;
    // Correctly rounded, as the parser's strtod is.
    const auto result = std::from_chars(begin, at_, part, std::chars_format::fixed);
    if (result.ec != std::errc() || result.ptr != at_) return false;
    value = lined(Json(part));
    return true;
  }

  const char* at_;
  const char* end_;
  int line_;
};

}  // namespace

std::optional<Json> read_plain_line(std::string_view text, int line) { return PlainLine(text, line).read(); }

}  // namespace foretoken

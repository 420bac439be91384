#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

/// Length of the valid UTF-8 sequence at the start of `text`; 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points beyond U+10FFFF show in the second byte.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

void dump_control(std::string& out, unsigned char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    case '\r': out += "\\r"; return;
    default: break;
  }
  out += "\\u00";
  out += digits[c >> 4];
  out += digits[c & 15];
}

void dump_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (c < 0x20) {
      dump_control(out, c);
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

template <class Integer>
void dump_integer(std::string& out, Integer value) {
  std::array<char, 24> buffer{};
  out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

void dump_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string text = to_text(value);
  out += text;
  // A fraction keeps the type through a round trip: 1.0 comes back as a double.
  if (text.find_first_of(".e") == std::string::npos) out += ".0";
}

void dump_break(std::string& out, int indent, int depth) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(depth), ' ');
}

}  // namespace

std::string Json::describe() const {
  switch (value_.index()) {
    case 0: return "null";
    case 1: return std::get<bool>(value_) ? "true" : "false";
    case 2:
    case 3: return "an integer";
    case 4: return "a number";
    case 5: {
      std::string text = std::get<std::string>(value_);
      if (text.size() > 60) text = text.substr(0, 57) + "...";
      std::string quoted = "a string ";
      dump_string(quoted, text);
      return quoted;
    }
    case 6: return "an array";
    default: return "an object";
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  dump_to(out, indent);
  return out;
}

void Json::dump_to(std::string& out, int indent, int depth) const {
  switch (value_.index()) {
    case 0: out += "null"; return;
    case 1: out += std::get<bool>(value_) ? "true" : "false"; return;
    case 2: dump_integer(out, std::get<std::int64_t>(value_)); return;
    case 3: dump_integer(out, std::get<std::uint64_t>(value_)); return;
    case 4: dump_double(out, std::get<double>(value_)); return;
    case 5: dump_string(out, std::get<std::string>(value_)); return;
    default: break;
  }
  const bool is_list = is_array();
  const std::size_t count = is_list ? as_array().size() : as_object().size();
  // A list of numbers reads better on one line, and profiles hold many of them.
  bool one_line = indent < 0 || count == 0;
  if (is_list && !one_line) {
    const Array& values = as_array();
    one_line = std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_number(); });
  }
  out += is_list ? '[' : '{';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += indent >= 0 && one_line ? ", " : ",";
    if (!one_line) dump_break(out, indent, depth + 1);
    if (!is_list) {
      dump_string(out, as_object()[i].first);
      out += indent < 0 ? ":" : ": ";
    }
    (is_list ? as_array()[i] : as_object()[i].second).dump_to(out, indent, depth + 1);
  }
  if (!one_line) dump_break(out, indent, depth);
  out += is_list ? ']' : '}';
}

}  // namespace foretoken

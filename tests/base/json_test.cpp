#include "sim/base/json.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;

namespace {

/// The message of the InputError that parsing `text` gives; empty when it parses.
std::string parse_fault(std::string_view text, bool comments = false) {
  try {
    static_cast<void>(Json::parse(text, "f.json", comments));
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

bool begins(const std::string& text, std::string_view prefix) { return text.starts_with(prefix); }

}  // namespace

TEST_CASE("malformed JSON is refused with name, line and column", "[unit]") {
  CHECK(begins(parse_fault(""), "f.json:1:1: "));
  CHECK(begins(parse_fault("{\"a\": [1, 2,}"), "f.json:1:13: "));
  CHECK(begins(parse_fault("{\n  \"a\": 1,\n  b\n}"), "f.json:3:"));
  CHECK(begins(parse_fault("{\n  \"a\": 1"), "f.json:2:9: "));
  CHECK(begins(parse_fault("\"abc"), "f.json:1:"));
  CHECK(begins(parse_fault("\"\xff\""), "f.json:1:"));
  CHECK(begins(parse_fault("{\"a\": 1e999}"), "f.json:1:"));
  CHECK(begins(parse_fault("// no\n1"), "f.json:1:"));
  CHECK(parse_fault("// yes\n1 /* and\n this */", true).empty());
}

TEST_CASE("text behind the document is refused", "[unit]") {
  CHECK(begins(parse_fault("{} {}"), "f.json:1:4: "));
  CHECK(begins(parse_fault("[1]\nx"), "f.json:2:"));
  CHECK(parse_fault("[1]\n \n").empty());
}

TEST_CASE("a key given twice is refused where it stands the second time", "[unit]") {
  const std::string fault = parse_fault("{\"a\": 1,\n \"a\": 2}");
  CHECK(begins(fault, "f.json:2:4: "));
  CHECK(fault.find("\"a\" twice") != std::string::npos);
  std::string wide = "{";
  for (int i = 0; i < 100; ++i) wide += "\"k" + std::to_string(i) + "\": 0, ";
  CHECK(parse_fault(wide + "\"k100\": 0}").empty());
  CHECK(parse_fault(wide + "\"k57\": 0}").find("\"k57\" twice") != std::string::npos);
  CHECK(parse_fault("{\"a\": {\"a\": 1}}").empty());
}

TEST_CASE("NUL is refused as a byte and as an escape", "[unit]") {
  CHECK(begins(parse_fault(std::string_view("{}\n\0x", 5)), "f.json:2:1: "));
  CHECK(parse_fault("\"a\\u0000b\"").find("NUL") != std::string::npos);
}

TEST_CASE("nesting is bounded at 200", "[unit]") {
  CHECK(parse_fault(std::string(200, '[') + std::string(200, ']')).empty());
  CHECK(parse_fault(std::string(201, '[') + std::string(201, ']')).find("200") != std::string::npos);
  CHECK_FALSE(parse_fault(std::string(1'000'000, '[')).empty());
}

TEST_CASE("integers keep all 64 bits, larger ones become doubles", "[unit]") {
  const Json values = Json::parse(
      "[-9223372036854775808, 9223372036854775807, 18446744073709551615, 1e3, 99999999999999999999]", "f");
  const auto& list = values.as_array();
  CHECK(list[0].as_int64() == std::numeric_limits<std::int64_t>::min());
  CHECK(list[1].as_int64() == std::numeric_limits<std::int64_t>::max());
  CHECK(list[2].as_uint64() == std::numeric_limits<std::uint64_t>::max());
  CHECK(list[3].as_int64() == 1000);
  CHECK_FALSE(list[4].is_integer());
  CHECK(list[4].as_double() == 1e20);
}

TEST_CASE("every value knows the line it began on", "[unit]") {
  const Json value = Json::parse("{\n\"a\": 1\n,\"b\":\n[\n2,\n\"x\"],\n\"c\": null}", "f");
  CHECK(value.line() == 1);
  CHECK(value.find("a")->line() == 2);
  CHECK(value.find("b")->line() == 4);
  CHECK(value.find("b")->as_array()[0].line() == 5);
  CHECK(value.find("b")->as_array()[1].line() == 6);
  CHECK(value.find("c")->line() == 7);
  CHECK(Json::parse_line("[1]", "t.jsonl", 42).as_array()[0].line() == 42);
}

TEST_CASE("what is written reads back as the same value", "[unit]") {
  Json value = Json::object({{"z", 1}, {"a", 2.0}, {"s", "q\"\\\n\x01 é"}, {"n", nullptr}, {"t", true}});
  value["list"] =
      Json::array({Json(0.1), Json(-5), Json(std::uint64_t{1} << 63), Json::object(), Json::array()});
  for (const int indent : {-1, 0, 2}) CHECK(Json::parse(value.dump(indent), "f") == value);
  CHECK(value.dump().starts_with("{\"z\":1,\"a\":2.0,"));
}

TEST_CASE("output is valid JSON whatever goes in", "[unit]") {
  CHECK(Json(std::nan("")).dump() == "null");
  CHECK(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  CHECK(Json("a\xff\xc3").dump() == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(Json("\xed\xa0\x80").dump() == "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  CHECK(Json::object({{"a", Json::array({1, 2})}}).dump(2) == "{\n  \"a\": [1, 2]\n}");
}

TEST_CASE("members keep their order and are replaced in place", "[unit]") {
  Json value;
  value.set("b", 1);
  value.set("a", 2);
  value.set("b", 3);
  value["c"].push_back(4);
  CHECK(value.dump() == "{\"b\":3,\"a\":2,\"c\":[4]}");
  CHECK(value.find("d") == nullptr);
  CHECK(Json(1).find("d") == nullptr);
}

TEST_CASE("a plain line is read as the parser reads it, or left to the parser", "[property]") {
  const std::vector<std::string> pieces{"\"a\"",
                                        "\"b c\"",
                                        "\"\\u0041\"",
                                        "\"\xc3\xa4\"",
                                        "\"a",
                                        "0",
                                        "17",
                                        "-3",
                                        "007",
                                        "1.5",
                                        "0.1234567890123456789",
                                        "2.",
                                        "1e3",
                                        "1.5e-3",
                                        "123456789012345678",
                                        "9223372036854775808",
                                        "[1,2]",
                                        "[ 1 , 2.5 ]",
                                        "[]",
                                        "[1,]",
                                        "[\"a\"]",
                                        "{}",
                                        "true",
                                        "null",
                                        ".5",
                                        "0x1"};
  std::int64_t read = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    laws::Draw draw(seed, 0);
    const auto blank = [&] { return std::string(draw.chance(0.2) ? " " : draw.chance(0.1) ? "\t\r" : ""); };
    std::string text = blank() + "{";
    for (std::int64_t n = draw.between(0, 4), i = 0; i < n; ++i) {
      const std::string key = draw.chance(0.95) ? "k" + std::to_string(i) : "k0";
      const auto piece = draw.chance(0.7) ? draw.pick({"0", "17", "\"a\"", "\"b c\"", "1.25", "0.1", "[1,2]"})
                                          : pieces[static_cast<std::size_t>(draw.between(0, 25))];
      text += (i > 0 ? "," : "") + blank() + "\"" + key + "\"" + blank() + ":" + blank() + piece + blank();
    }
    text += "}" + blank();
    if (draw.chance(0.2)) text.erase(static_cast<std::size_t>(draw.between(0, std::ssize(text) - 1)), 1);
    const std::optional<Json> plain = read_plain_line(text, 7);
    if (!plain) continue;
    INFO(text);
    ++read;
    const Json parsed = Json::parse(text, "t.jsonl");
    CHECK(*plain == parsed);
    CHECK(plain->line() == 7);
    for (const auto& [key, value] : plain->as_object()) CHECK(value.line() == 7);
  }
  CHECK(read > 500);
}

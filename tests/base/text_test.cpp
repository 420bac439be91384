#include "sim/base/text.hpp"

#include <cstdint>
#include <limits>

#include "tests/catch.hpp"

using namespace foretoken;

TEST_CASE("a double is printed so that it reads back as itself", "[unit]") {
  for (const double value : {0.1, 1.0 / 3.0, 1e300, 5e-324, -0.0, 123456789.123}) {
    CHECK(parse_double(to_text(value)) == value);
  }
}

TEST_CASE("a short number has three digits or all of its whole ones", "[unit]") {
  CHECK(short_number(0) == "0");
  CHECK(short_number(0.0123) == "0.0123");
  CHECK(short_number(4.71) == "4.71");
  CHECK(short_number(9.996) == "10.0");
  CHECK(short_number(312.4) == "312");
  CHECK(short_number(17500) == "17500");
  CHECK(short_number(-2.5) == "-2.50");
  CHECK(short_number(1.5e-9) == "1.50e-09");
}

TEST_CASE("thousands are separated by commas", "[unit]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(12031) == "12,031");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(-123) == "-123");
}

TEST_CASE("a number is the whole text or nothing", "[unit]") {
  for (const char* text : {"", " 1", "1 ", "1x", "nan", "inf", "1e999", "+1", "--1"})
    CHECK_FALSE(parse_double(text));
  for (const char* text : {"", "1.0", "9223372036854775808", "0x10", "1 "}) CHECK_FALSE(parse_int64(text));
  CHECK(parse_int64("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK(parse_double("1e-3") == 0.001);
}

TEST_CASE("a duration needs its unit", "[unit]") {
  CHECK(parse_duration_ps("500ms") == 500'000'000'000);
  CHECK(parse_duration_ps("1.5 s") == 1'500'000'000'000);
  CHECK(parse_duration_ps("2m") == 120'000'000'000'000);
  CHECK(parse_duration_ps("3us") == 3'000'000);
  CHECK(parse_duration_ps("7ns") == 7'000);
  CHECK(parse_duration_ps("9ps") == 9);
  CHECK(parse_duration_ps("1h") == 3'600'000'000'000'000);
  for (const char* text : {"", "5", "s", "-1s", "1e9h", "1d", "1 s s", "1e999s"})
    CHECK_FALSE(parse_duration_ps(text));
}

TEST_CASE("a duration is printed in the unit that suits it", "[unit]") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(312) == "312 ps");
  CHECK(duration_text(312'000'000'000) == "312 ms");
  CHECK(duration_text(4'710'000'000'000) == "4.71 s");
  CHECK(duration_text(999'700'000'000) == "1.00 s");
  CHECK(duration_text(59'960'000'000'000) == "1m00s");
  CHECK(duration_text(3'502'000'000'000'000) == "58m22s");
  CHECK(duration_text(7'380'000'000'000'000) == "2h03m");
  CHECK(duration_text(-1'500) == "-1.50 ns");
}

TEST_CASE("splitting keeps empty pieces and trimming keeps inner blanks", "[unit]") {
  CHECK(split("", ',').size() == 1);
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
  CHECK(trim(" \ta b\r\n") == "a b");
  CHECK(trim(" \t") == "");
}

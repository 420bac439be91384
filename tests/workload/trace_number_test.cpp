#include "sim/workload/trace_number.hpp"

#include "sim/workload/trace_writer.hpp"
#include "tests/catch.hpp"

using namespace foretoken;

TEST_CASE("decimal times keep every digit down to the nanosecond", "[unit]") {
  CHECK(parse_decimal_ns("4.314579", 0) == 4'314'579'000);
  CHECK(parse_decimal_ns("0.1234567891", 0) == 123'456'789);
  CHECK(parse_decimal_ns("0.1234567895", 0) == 123'456'790);
  CHECK(parse_decimal_ns("10540800", 0) == 10'540'800'000'000'000);
  CHECK(parse_decimal_ns("1700000000.123456789", 0) == 1'700'000'000'123'456'789);
  CHECK(parse_decimal_ns("27482", -3) == 27'482'000'000);
  CHECK(parse_decimal_ns("1.5", -6) == 1'500);
  CHECK(parse_decimal_ns("7.5", -9) == 8);
  CHECK(parse_decimal_ns("2.", 0) == 2'000'000'000);
  CHECK(parse_decimal_ns(".5", -9) == 1);
  CHECK(parse_decimal_ns("1e3", -3) == 1'000'000'000);
}

TEST_CASE("text that is no time in reach is no number", "[unit]") {
  for (const char* text : {"", ".", "-1", "+1", "nan", "inf", "0x10", "1 s", "5ms", "1,5", "1.2.3", "1e999",
                           "1e20", "99999999999999999999", "9999999999"}) {
    INFO(text);
    CHECK_FALSE(parse_decimal_ns(text, 0));
  }
}

TEST_CASE("wall times are exact to 100 ns and count days as the calendar does", "[unit]") {
  CHECK(parse_wall_time_ns("1970-01-01 00:00:00") == 0);
  CHECK(parse_wall_time_ns("2023-11-16 18:15:46.6805900") == 1'700'158'546'680'590'000);
  CHECK(parse_wall_time_ns("2024-02-29T23:59:59.9999999Z") == 1'709'251'199'999'999'900);
  CHECK(parse_wall_time_ns("2024-05-10 02:00:00.009930+02:00") ==
        parse_wall_time_ns("2024-05-10 00:00:00.00993"));
  CHECK(parse_wall_time_ns("2000-03-01 00:00:00") == 951'868'800'000'000'000);
}

TEST_CASE("what is no date is refused", "[unit]") {
  for (const char* text :
       {"", "2023-11-16", "2023-02-29 00:00:00", "2023-13-01 00:00:00", "2023-11-16 24:00:00",
        "2023-11-16 18:15", "2023-11-16 18:15:46.", "2023-11-16 18:15:46.1234567890123",
        "2023-11-16 18:15:46+25:00", "16.11.2023 18:15:46", "2023-11-16 18:15:46 UTC", "1969-12-31 23:59:59",
        "9999-01-01 00:00:00"}) {
    INFO(text);
    CHECK_FALSE(parse_wall_time_ns(text));
  }
}

TEST_CASE("decimal seconds as written are the nanoseconds that are read", "[property]") {
  for (std::int64_t ns :
       {0LL, 1LL, 999'999'999LL, 1'000'000'000LL, 1'234'567'890'123'456LL, 3'999'999'999'999'900LL}) {
    CHECK(parse_decimal_ns(decimal_seconds(ns), 0) == ns);
    CHECK(seconds_to_ns(std::stod(decimal_seconds(ns))) == ns);
  }
}

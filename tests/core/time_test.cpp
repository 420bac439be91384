#include "sim/core/time.hpp"

#include <chrono>
#include <type_traits>

#include "sim/core/executor.hpp"
#include "sim/core/observer.hpp"
#include "tests/catch.hpp"

using namespace foretoken;
using namespace std::chrono_literals;

TEST_CASE("engine time is whole picoseconds, and coarser units convert without loss") {
  STATIC_REQUIRE(Duration(1ns).count() == 1000);
  STATIC_REQUIRE(Duration(1us).count() == 1'000'000);
  STATIC_REQUIRE(Duration(1ms).count() == 1'000'000'000);
  STATIC_REQUIRE(Duration(1s).count() == 1'000'000'000'000);
  // What would have to be rounded does not convert by itself, neither a fraction nor a coarser unit.
  STATIC_REQUIRE_FALSE(std::is_convertible_v<Duration, std::chrono::nanoseconds>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<std::chrono::duration<double>, Duration>);
  // Down to the unit below: truncated towards zero.
  STATIC_REQUIRE(std::chrono::duration_cast<std::chrono::nanoseconds>(Duration{1999}).count() == 1);
}

TEST_CASE("64 bits of picoseconds span 106 days") {
  STATIC_REQUIRE(Duration(std::chrono::hours(24 * 106)) < kForever);
  STATIC_REQUIRE(Duration(std::chrono::hours(24 * 106)).count() > 0);
  // 2^63 / 10^12 seconds.
  CHECK(static_cast<std::int64_t>(seconds(kForever)) == 9223372);
}

TEST_CASE("times and durations without end stay without end") {
  STATIC_REQUIRE(after(Time{Duration{5}}, Duration{7}) == Time{Duration{12}});
  STATIC_REQUIRE(after(Time{Duration{5}}, Duration{-7}) == Time{Duration{-2}});
  STATIC_REQUIRE(after(kNever, Duration{7}) == kNever);
  STATIC_REQUIRE(after(kNever, Duration{-7}) == kNever);
  STATIC_REQUIRE(after(Time{Duration{5}}, kForever) == kNever);
  STATIC_REQUIRE(after(kNever, kForever) == kNever);
  STATIC_REQUIRE(picoseconds(Time{Duration{12}}) == 12);
  CHECK(seconds(Duration{1}) == 1e-12);
  CHECK(seconds(Duration(2500ms)) == 2.5);
}

TEST_CASE("the end of a window is the sum of its steps") {
  Window window;
  window.begin = Time{Duration{100}};
  window.first = Duration{17};
  window.growth = Duration{3};
  StepRecord record;
  record.begin = window.begin;
  record.first = window.first;
  record.growth = window.growth;
  std::int64_t sum = 100;
  for (std::int64_t repeats = 0; repeats < 50; ++repeats) {
    CHECK(window.end_after(repeats) == Time{Duration{sum}});
    record.repeats = repeats;
    CHECK(record.end() == Time{Duration{sum}});
    sum += 17 + 3 * repeats;
  }
}

#include "sim/workload/lengths.hpp"

#include <cmath>

#include "sim/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Detail::Approx;

namespace {

LengthMoments moments(double LengthMoments::*a, double x, double LengthMoments::*b, double y) {
  LengthMoments m;
  m.*a = x;
  m.*b = y;
  return m;
}

}  // namespace

TEST_CASE("a log-normal length is the same by whichever two facts it is given", "[property]") {
  const double mu = 6.5, sigma = 0.8;
  const double mean_tokens = std::exp(mu + sigma * sigma / 2);
  const double sd = mean_tokens * std::sqrt(std::expm1(sigma * sigma));
  const double p50 = std::exp(mu), p99 = std::exp(mu + 2.3263478740408408 * sigma);
  using M = LengthMoments;
  for (const M& given :
       {moments(&M::mean, mean_tokens, &M::sd, sd), moments(&M::mean, mean_tokens, &M::p50, p50),
        moments(&M::mean, mean_tokens, &M::p99, p99), moments(&M::p50, p50, &M::p99, p99),
        moments(&M::mu, mu, &M::sigma, sigma)}) {
    const auto spec = log_normal(given);
    REQUIRE(spec);
    CHECK(spec->mu == Approx(mu));
    CHECK(spec->sigma == Approx(sigma));
    CHECK(mean(*spec) == Approx(mean_tokens));
  }
}

TEST_CASE("facts that no log-normal distribution has are refused", "[unit]") {
  using M = LengthMoments;
  CHECK_FALSE(log_normal(moments(&M::mean, 100, &M::p50, 200)));
  CHECK_FALSE(log_normal(moments(&M::mean, 100, &M::p99, 1600)));
  CHECK_FALSE(log_normal(moments(&M::mean, 100, &M::mu, 2)));
  CHECK_FALSE(log_normal(M{}));
  CHECK_FALSE(log_normal(moments(&M::mean, 100, &M::sd, 10), 5, 4));
}

TEST_CASE("draws stay in their bounds and have the stated mean", "[property]") {
  const RandomStream draws(3, 3);
  const auto mean_of = [&](const LengthSpec& spec, std::int32_t low, std::int32_t high) {
    double sum = 0;
    constexpr int count = 200'000;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int32_t value = draw_length(spec, draws.uniform(3 * i), draws.normal(i + 1'000'000));
      REQUIRE(value >= low);
      REQUIRE(value <= high);
      sum += value;
    }
    return sum / count;
  };
  CHECK(mean_of(fixed_length(7), 7, 7) == 7.0);
  CHECK(mean_of(uniform_length(8, 512), 8, 512) == Approx(260).epsilon(0.01));
  CHECK(mean_of(uniform_length(0, kTokensMax), 0, kTokensMax) == Approx(kTokensMax / 2).epsilon(0.01));
  const auto wide = log_normal(moments(&LengthMoments::mean, 200, &LengthMoments::sd, 150)).value();
  CHECK(mean_of(wide, 1, kTokensMax) == Approx(200).epsilon(0.01));
  const auto clamped =
      log_normal(moments(&LengthMoments::mean, 200, &LengthMoments::sd, 150), 100, 300).value();
  mean_of(clamped, 100, 300);
}

TEST_CASE("lengths in flags read as they are written", "[unit]") {
  CHECK(parse_length("120", "--prompt").min == 120);
  const LengthSpec uniform = parse_length("uniform:8..512", "--prompt");
  CHECK(uniform.kind == LengthKind::uniform);
  CHECK(uniform.max == 512);
  const LengthSpec wide = parse_length("log-normal:mean=120,p99=600,min=8,max=512", "--prompt");
  CHECK(mean(wide) == Approx(120));
  CHECK(wide.min == 8);
  CHECK(wide.max == 512);
  for (const char* text : {"", "-1", "1.5", "uniform:9..8", "uniform:8", "log-normal:", "log-normal:mean=5",
                           "log-normal:mean=5,p50=9", "log-normal:mean=5,sd=1,maxx=3",
                           "log-normal:mean=5,sd=1,min=nan", "log-normal:mean=5,mean=5"}) {
    INFO(text);
    CHECK(error_of([&] { parse_length(text, "--prompt"); }).find("--prompt: expected a length such as") == 0);
  }
}

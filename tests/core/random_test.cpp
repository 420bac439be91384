#include "sim/core/random.hpp"

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "tests/catch.hpp"

using namespace foretoken;

TEST_CASE("the mixer gives the published answers of SplitMix64") {
  // The generator's first answers from the state 1234567, as its authors' reference program prints them: call
  // k mixes the state advanced k times by the golden gamma.
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15u;
  constexpr std::array<std::uint64_t, 5> kAnswers{6457827717110365317u, 3203168211198807973u,
                                                  9817491932198370423u, 4593380528125082431u,
                                                  16408922859458223821u};
  for (std::uint64_t k = 0; k < kAnswers.size(); ++k) CHECK(mix(1234567u + k * kGamma) == kAnswers[k]);
  CHECK(mix(0) == 0xe220a8397b1dcdafu);
}

TEST_CASE("draws of a stream are known numbers, on every machine") {
  // Worked out with big integers from the definition: key = mix(seed ^ mix(stream)), bits(i) = mix(key +
  // mix(i)).
  CHECK(RandomStream(0, 0).bits(0) == 0x9ababb68568302b9u);
  CHECK(RandomStream(1, 1).bits(0) == 0xb65ab842b3162393u);
  CHECK(RandomStream(1, 1).bits(1) == 0xaa66cbfdd1d5ec5du);
  CHECK(RandomStream(42, 7).bits(1000000) == 0xa385d1477ac35e63u);
  CHECK(RandomStream(~0ull, ~0ull).bits(~0ull) == 0x6da0ab341b88293cu);
  CHECK(RandomStream(1, 2).bits(0) == 0xe73d9d933a471adcu);
  // The upper 53 bits and a half, over 2^53.
  CHECK(RandomStream(0, 0).uniform(0) == 0.6044118051272669);
  CHECK(RandomStream(1, 2).uniform(0) == 0.9032839283411502);
  // The upper 32 bits times the span, over 2^32: of 0x9ababb68 times 6 that is 3.
  CHECK(RandomStream(0, 0).integer(0, 1, 6) == 4);
  CHECK(RandomStream(1, 2).integer(0, -5, 0) == 0);
  CHECK(RandomStream(0, 0).integer(0, 9, 9) == 9);
}

TEST_CASE("draws neither depend on each other nor repeat across streams and seeds") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t stream = 0; stream < 10; ++stream)
      for (std::uint64_t i = 0; i < 100; ++i) seen.insert(RandomStream(seed, stream).bits(i));
  CHECK(seen.size() == 10000u);
  // Any order gives the same draws.
  const RandomStream stream(3, 4);
  const std::uint64_t later = stream.bits(77);
  stream.bits(12);
  CHECK(stream.bits(77) == later);
}

TEST_CASE("each bit is fair, and streams that differ by one are as good as independent") {
  constexpr int kDraws = 20000;
  const double sigma = std::sqrt(kDraws) / 2;
  for (const auto& [seed, stream] : {std::pair{1u, 1u}, {1u, 2u}, {2u, 1u}}) {
    const RandomStream a(seed, stream), next_stream(seed, stream + 1), next_seed(seed + 1, stream);
    std::array<int, 64> ones{}, with_stream{}, with_seed{}, with_next{};
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const std::uint64_t x = a.bits(i);
      const std::uint64_t partners[] = {0, next_stream.bits(i), next_seed.bits(i), a.bits(i + 1)};
      std::array<int, 64>* const counts[] = {&ones, &with_stream, &with_seed, &with_next};
      for (std::size_t p = 0; p < 4; ++p)
        for (std::size_t bit = 0; bit < 64; ++bit)
          (*counts[p])[bit] += static_cast<int>(((x ^ partners[p]) >> bit) & 1);
    }
    // 768 counts in all; five standard deviations leave a chance below one in two thousand.
    for (const auto& counts : {ones, with_stream, with_seed, with_next})
      for (const int count : counts) CHECK(std::abs(count - kDraws / 2) < 5 * sigma);
  }
}

TEST_CASE("integers are uniform over their range, ends included") {
  const RandomStream stream(5, 6);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts[static_cast<std::size_t>(stream.integer(i, -3, 3) + 3)];
  double chi_squared = 0;
  for (const int count : counts) chi_squared += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  CHECK(chi_squared < 22.46);  // 99.9 % at 6 degrees of freedom
}

TEST_CASE("exponential, normal and gamma draws have their moments") {
  const RandomStream stream(7, 8);
  constexpr int kDraws = 40000;
  // Five standard errors of mean and variance: the variance's is sqrt((kurtosis - 1) / n) times itself.
  const auto require_moments = [&](const auto& draw, double mean, double variance, double kurtosis) {
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double x = draw(i);
      sum += x;
      squares += (x - mean) * (x - mean);
    }
    CHECK(std::abs(sum / kDraws - mean) < 5 * std::sqrt(variance / kDraws));
    CHECK(std::abs(squares / kDraws - variance) < 5 * variance * std::sqrt((kurtosis - 1) / kDraws));
  };
  require_moments([&](std::uint64_t i) { return stream.uniform(i); }, 0.5, 1.0 / 12, 1.8);
  require_moments([&](std::uint64_t i) { return stream.exponential(i); }, 1.0, 1.0, 9.0);
  require_moments([&](std::uint64_t i) { return stream.normal(i); }, 0.0, 1.0, 3.0);
  for (const double shape : {0.25, 1.0, 4.0})
    require_moments([&](std::uint64_t i) { return stream.gamma(i, shape); }, 1.0, 1 / shape, 3 + 6 / shape);
}

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/sample.hpp"
#include "kernels/cuda/sample.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/device_fixture.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;
using sampling::SampleParams;

namespace {

std::int32_t on_cpu(const std::vector<float>& logits, const SampleParams& params) {
  static cpu::SampleScratch scratch;
  return cpu::sample_row(logits.data(), static_cast<std::int32_t>(logits.size()), params, scratch);
}

std::vector<float> draw_logits(Numbers& draw, int count, float spread) {
  std::vector<float> logits;
  for (int i = 0; i < count; ++i) logits.push_back(draw.number(ElementType::f32) * spread);
  return logits;
}

SampleParams draw_params(Numbers& draw, std::uint64_t request, std::uint64_t position) {
  SampleParams params{.temperature = 0.1F + static_cast<float>(draw.whole(0, 20)) * 0.1F,
                      .seed = draw.seed,
                      .request = request,
                      .position = position};
  if (draw.whole(0, 7) == 0) params.temperature = 0;
  if (draw.whole(0, 3) == 0) params.min_p = static_cast<float>(draw.whole(1, 10)) * 0.1F;
  if (draw.whole(0, 2) == 0) params.top_p = static_cast<float>(draw.whole(0, 99)) * 0.01F;
  if (draw.whole(0, 2) == 0) params.top_k = draw.whole(1, 50);
  return params;
}

/// The tokens that may be drawn, found by sorting in double precision.
std::vector<bool> allowed_by_sorting(const std::vector<float>& logits, const SampleParams& params) {
  const auto count = logits.size();
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> z;
  for (const float x : logits) z.push_back((x - most) / params.temperature);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return z[a] > z[b]; });
  const auto below = [&](std::size_t i) { return params.min_p > 0 && std::exp(z[i]) < double{params.min_p}; };
  order.erase(std::remove_if(order.begin(), order.end(), below), order.end());
  if (params.top_k > 0 && order.size() > static_cast<std::size_t>(params.top_k))
    order.resize(static_cast<std::size_t>(params.top_k));
  double total = 0, sum = 0;
  for (const std::size_t i : order) total += std::exp(z[i]);
  std::vector<bool> allowed(count);
  for (const std::size_t i : order) {
    allowed[i] = true;
    sum += std::exp(z[i]);
    if (params.top_p < 1 && sum >= params.top_p * total) break;
  }
  return allowed;
}

/// How often each token is drawn, over many positions.
std::vector<double> frequencies(const std::vector<float>& logits, SampleParams params, int draws) {
  std::vector<double> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    params.position = static_cast<std::uint64_t>(i);
    counts[static_cast<std::size_t>(on_cpu(logits, params))] += 1;
  }
  return counts;
}

/// Pearson's statistic of counts against the softmax over the allowed tokens, and its degrees of freedom.
std::pair<double, int> chi_square(const std::vector<float>& logits, const SampleParams& params, int draws) {
  const std::vector<double> counts = frequencies(logits, params, draws);
  const std::vector<bool> allowed = allowed_by_sorting(logits, params);
  double total = 0, statistic = 0;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (allowed[i]) total += std::exp(double{logits[i]} / params.temperature);
  int cells = 0;
  double rare_expected = 0, rare_counted = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = allowed[i] ? std::exp(double{logits[i]} / params.temperature) / total * draws : 0;
    if (expected == 0) CHECK(counts[i] == 0);
    if (expected < 20) {
      rare_expected += expected;
      rare_counted += counts[i];
      continue;
    }
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++cells;
  }
  if (rare_expected >= 20) {
    statistic += (rare_counted - rare_expected) * (rare_counted - rare_expected) / rare_expected;
    ++cells;
  }
  return {statistic, cells - 1};
}

}  // namespace

TEST_CASE("the device draws the CPU's tokens, row by row", "[property]") {
  int rows_total = 0;
  in_all_orders([&] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Numbers draw{seed};
      const int rows = draw.whole(1, 20), vocabulary = draw.whole(1, seed % 10 == 0 ? 3000 : 300);
      const std::int64_t stride = vocabulary + draw.whole(0, 1) * draw.whole(0, 4);
      DeviceMatrix device(ElementType::f32, rows, vocabulary, stride);
      std::vector<SampleParams> params;
      std::vector<std::int32_t> want, got(static_cast<std::size_t>(rows), -1);
      for (int r = 0; r < rows; ++r) {
        params.push_back(draw_params(draw, static_cast<std::uint64_t>(r), seed));
        std::vector<float> logits = draw_logits(draw, vocabulary, draw.whole(0, 1) == 0 ? 5.0F : 40.0F);
        if (r % 5 == 0)  // ties
          for (float& x : logits) x = std::round(x);
        if (r % 7 == 3) logits[static_cast<std::size_t>(draw.whole(0, vocabulary - 1))] = std::nanf("");
        if (r % 7 == 4) logits[static_cast<std::size_t>(draw.whole(0, vocabulary - 1))] = -INFINITY;
        for (int i = 0; i < vocabulary; ++i) device.set(r, i, logits[static_cast<std::size_t>(i)]);
        want.push_back(on_cpu(logits, params.back()));
      }
      cuda::sample({rows, vocabulary, device.bytes.as<float>(), stride, params.data(), got.data()}, nullptr);
      INFO("seed " << seed);
      CHECK(got == want);
      rows_total += rows;
    }
  });
  CHECK(rows_total > 1500);
}

TEST_CASE("the comparison with the CPU sees any changed parameter") {
  Numbers draw{12};
  constexpr int kRows = 64, kVocabulary = 100;
  DeviceMatrix device(ElementType::f32, draw.matrix(kRows, kVocabulary, ElementType::f32), kVocabulary);
  const auto tokens_of = [&](const SampleParams& params) {
    const std::vector<SampleParams> all(kRows, params);
    std::vector<std::int32_t> got(kRows, -1);
    cuda::sample({kRows, kVocabulary, device.bytes.as<float>(), kVocabulary, all.data(), got.data()},
                 nullptr);
    return got;
  };
  const SampleParams base{.temperature = 0.7F, .min_p = 0.3F, .top_p = 0.7F, .top_k = 40, .request = 1};
  const auto want = tokens_of(base);
  const auto changed = [&](auto&& change) {
    SampleParams params = base;
    change(params);
    return tokens_of(params) != want;
  };
  CHECK_FALSE(changed([](SampleParams&) {}));
  CHECK(changed([](SampleParams& p) { p.temperature = 0.8F; }));
  CHECK(changed([](SampleParams& p) { p.min_p = 0.6F; }));
  CHECK(changed([](SampleParams& p) { p.top_p = 0.4F; }));
  CHECK(changed([](SampleParams& p) { p.top_k = 10; }));
  CHECK(changed([](SampleParams& p) { p.seed = 1; }));
  CHECK(changed([](SampleParams& p) { p.request = 2; }));
  CHECK(changed([](SampleParams& p) { p.position = 1; }));
}

TEST_CASE("greedy rows take the first of the largest, rows without numbers the first token") {
  for (const bool has_params : {false, true}) {
    const std::vector<float> logits{
        1,         3,         std::nanf(""), 3, -INFINITY, 2, std::nanf(""), std::nanf(""), std::nanf(""),
        -INFINITY, -INFINITY, -INFINITY};
    const std::vector<SampleParams> params(3);
    std::vector<std::int32_t> got(3, -1);
    cuda::sample({3, 4, logits.data(), 4, has_params ? params.data() : nullptr, got.data()}, nullptr);
    CHECK(got == std::vector<std::int32_t>{1, 1, 1});
    for (std::size_t r = 0; r < 3; ++r)
      CHECK(on_cpu({logits.begin() + static_cast<std::ptrdiff_t>(r) * 4,
                    logits.begin() + static_cast<std::ptrdiff_t>(r + 1) * 4},
                   params[r]) == got[r]);
  }
}

TEST_CASE("draws follow the softmax, within what min_p, top_k and top_p leave", "[property]") {
  Numbers draw{42};
  const std::vector<float> logits = draw_logits(draw, 50, 4.0F);
  std::vector<SampleParams> all{{.temperature = 1},
                                {.temperature = 0.5F},
                                {.temperature = 2},
                                {.temperature = 1, .min_p = 0.05F},
                                {.temperature = 1, .top_p = 0.8F},
                                {.temperature = 1, .top_k = 5},
                                {.temperature = 1.5F, .min_p = 0.01F, .top_p = 0.9F, .top_k = 20}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].seed = 1000 + i;
    const auto [statistic, freedom] = chi_square(logits, all[i], 40000);
    INFO("case " << i << ": chi-square " << statistic << " with " << freedom << " degrees of freedom");
    // Four standard deviations of the normal approximation.
    CHECK(statistic < freedom + 4 * std::sqrt(2.0 * freedom));
    CHECK(freedom > 2);
  }
}

TEST_CASE("a biased draw is seen by the chi-square") {
  Numbers draw{42};
  const std::vector<float> logits = draw_logits(draw, 50, 4.0F);
  std::vector<float> shifted = logits;
  *std::max_element(shifted.begin(), shifted.end()) += 0.1F;
  const SampleParams params{.temperature = 1, .seed = 5};
  const std::vector<double> counts = frequencies(shifted, params, 40000);
  double total = 0, statistic = 0;
  for (const float x : logits) total += std::exp(double{x});
  for (std::size_t i = 0; i < 50; ++i) {
    const double expected = std::exp(double{logits[i]}) / total * 40000;
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  CHECK(statistic > 49 + 4 * std::sqrt(98.0));
}

TEST_CASE("the short cut never leaves out a token that would win", "[property]") {
  Numbers draw{77};
  int passed = 0, reached = 0;
  for (int i = 0; i < 300000; ++i) {
    const float z = (draw.number(ElementType::f32) - 1.0F) * 12.0F,
                best = draw.number(ElementType::f32) * 12.0F;
    const std::uint32_t random =
        sampling::uniform(99, static_cast<std::uint32_t>(i)) | (i % 3 == 0 ? 0xffff00U : 0U);
    const bool reaches = sampling::score(z, random) >= best, may = sampling::may_reach(z, random, best);
    REQUIRE((may || !reaches));
    passed += may ? 1 : 0;
    reached += reaches ? 1 : 0;
  }
  CHECK(passed < 3 * reached);
  CHECK(sampling::score(0.0F, 0xffffffU) < sampling::kNoiseMax);
}

TEST_CASE("tokens outside what sorting allows are never drawn", "[property]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Numbers draw{seed};
    const std::vector<float> logits = draw_logits(draw, draw.whole(1, 400), 8.0F);
    SampleParams params = draw_params(draw, 1, 0);
    if (params.temperature == 0) continue;
    // Away from the edges, where double and single precision may disagree about one token.
    params.top_p *= 0.9999F;
    const std::vector<bool> allowed = allowed_by_sorting(logits, params);
    for (std::uint64_t position = 0; position < 20; ++position) {
      params.position = position;
      INFO("seed " << seed);
      CHECK(allowed[static_cast<std::size_t>(on_cpu(logits, params))]);
    }
  }
}

TEST_CASE("a draw depends on seed, request and position, and not on its place") {
  Numbers draw{9};
  const std::vector<float> logits = draw_logits(draw, 200, 1.0F);
  const SampleParams base{.temperature = 1, .seed = 1, .request = 2, .position = 3};
  int same = 0;
  for (std::uint64_t i = 1; i <= 100; ++i)
    for (SampleParams other : {SampleParams{.temperature = 1, .seed = 1 + i, .request = 2, .position = 3},
                               SampleParams{.temperature = 1, .seed = 1, .request = 2 + i, .position = 3},
                               SampleParams{.temperature = 1, .seed = 1, .request = 2, .position = 3 + i}})
      same += on_cpu(logits, other) == on_cpu(logits, base) ? 1 : 0;
  CHECK(same < 30);
}

TEST_CASE("logarithm and exponential are near the library's") {
  double worst = 0;
  for (std::uint32_t bits = 0x00800000U; bits < 0x7f000000U; bits += 9973) {
    const float x = std::bit_cast<float>(bits);
    const double want = std::log(double{x}), error = std::abs(sampling::log_exact(x) - want);
    worst = std::max(worst, want == 0 ? error : error / std::max(std::abs(want), 1e-7));
  }
  CHECK(worst < 3e-7);
  for (std::uint32_t k = 1; k < 4000; ++k) {
    const float u = 1.0F - static_cast<float>(k) / 16777216.0F;
    CHECK(std::abs(sampling::log_exact(u) / std::log(double{u}) - 1) < 1e-6);
  }
  for (float z = 0; z > -27; z -= 0.0037F) {
    const double want = std::exp(double{z}), got = std::ldexp(static_cast<double>(sampling::mass_of(z)), -40);
    CHECK(std::abs(got - want) < want * 4e-7 + 1e-12);
  }
  CHECK(sampling::mass_of(0) == std::uint64_t{1} << 40);
  CHECK(sampling::mass_of(std::nanf("")) == 0);
}

TEST_CASE("what a row costs on the CPU", "[.cost]") {
  Numbers draw{1};
  const std::vector<float> logits = draw_logits(draw, 128256, 10.0F);
  const std::pair<const char*, SampleParams> kinds[] = {{"greedy", {}},
                                                        {"temperature", {.temperature = 0.8F}},
                                                        {"top_p", {.temperature = 0.8F, .top_p = 0.9F}},
                                                        {"top_k", {.temperature = 0.8F, .top_k = 50}}};
  for (const auto& [name, params] : kinds) {
    on_cpu(logits, params);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) on_cpu(logits, params);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    WARN(name << ": " << took.count() / 5 / 128256 << " ns per token of the vocabulary");
  }
}

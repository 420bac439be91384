#include "kernels/cuda/quantise_rows.hpp"

#include <cfenv>

#include "tests/catch.hpp"
#include "tests/cuda/product_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;
using reference::Matrix;

namespace {

struct Quantised {
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;
};

Quantised quantise_matrix(const Matrix& w, ElementType type) {
  const StoredWeights weights(type == ElementType::f32 ? cuda::WeightType::f32 : cuda::WeightType::bf16, w);
  Quantised result{
      std::vector<std::int8_t>(w.values.size(), -128),
      std::vector<float>(static_cast<std::size_t>(w.rows), std::numeric_limits<float>::quiet_NaN())};
  cuda::quantise_rows({w.rows, w.columns, weights.data(), type, result.bytes.data(), result.scales.data()},
                      nullptr);
  return result;
}

/// The same in plain steps: each division rounded once, in single precision, as the format says.
Quantised quantised_twin(const Matrix& w) {
  Quantised result;
  for (int r = 0; r < w.rows; ++r) {
    double largest = 0;
    for (int k = 0; k < w.columns; ++k) largest = std::max(largest, std::abs(w.at(r, k)));
    auto scale = static_cast<float>(largest / 127.0);
    if (scale < std::numeric_limits<float>::min()) scale = 0;
    result.scales.push_back(scale);
    for (int k = 0; k < w.columns; ++k) {
      const double ratio = scale == 0 ? 0.0 : static_cast<float>(w.at(r, k) / static_cast<double>(scale));
      const double below = std::floor(ratio);
      const bool up = ratio - below > 0.5 || (ratio - below == 0.5 && std::fmod(below, 2.0) != 0);
      result.bytes.push_back(static_cast<std::int8_t>(std::clamp(below + (up ? 1 : 0), -127.0, 127.0)));
    }
  }
  return result;
}

bool same_quantised(const Quantised& a, const Quantised& b) {
  return a.bytes == b.bytes && a.scales.size() == b.scales.size() &&
         std::memcmp(a.scales.data(), b.scales.data(), a.scales.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("quantised rows are those of the twin, to the bit, in every thread order", "[property]") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Numbers draw{seed};
    const ElementType type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
    Matrix w = draw.matrix(draw.whole(1, 20), draw.whole(1, 700), type);
    const double size = std::ldexp(1.0, draw.whole(-90, 90));
    for (double& x : w.values) x *= size;
    in_all_orders([&] {
      INFO("seed " << seed);
      CHECK(same_quantised(quantise_matrix(w, type), quantised_twin(w)));
    });
  }
}

TEST_CASE("quantised rows: ties go to even, extremes to 127, rows of zeros and of next to nothing to zero",
          "[unit]") {
  Matrix w(4, 6);
  const double first[6] = {127, -127, 0.5, 1.5, -2.5, 126.5};
  for (int k = 0; k < 6; ++k) {
    w.at(0, k) = first[k];
    w.at(2, k) = 1e-43;
    w.at(3, k) = -3e38;
  }
  const Quantised got = quantise_matrix(w, ElementType::f32);
  CHECK(std::vector<int>(got.bytes.begin(), got.bytes.begin() + 6) ==
        std::vector<int>{127, -127, 0, 2, -2, 126});
  CHECK(got.scales[0] == 1.0F);
  for (std::size_t i = 6; i < 18; ++i) CHECK(got.bytes[i] == 0);
  CHECK((got.scales[1] == 0 && got.scales[2] == 0));
  CHECK(got.bytes[18] == -127);
  CHECK_THROWS_AS(cuda::quantise_rows({1, 0, w.values.data(), ElementType::f32, nullptr, nullptr}, nullptr),
                  cuda::LaunchError);
}

TEST_CASE("a quantised weight is within half a step, and a step too coarse is noticed", "[property]") {
  Numbers draw{4};
  const Matrix w = draw.matrix(7, 300, ElementType::f32);
  Quantised got = quantise_matrix(w, ElementType::f32);
  const auto worst = [&](float factor) {
    double steps = 0;
    for (int r = 0; r < w.rows; ++r)
      for (int k = 0; k < w.columns; ++k) {
        const auto scale = static_cast<double>(got.scales[static_cast<std::size_t>(r)] * factor);
        const int byte = got.bytes[static_cast<std::size_t>(r * w.columns + k)];
        steps = std::max(steps, std::abs(byte * scale - w.at(r, k)) / scale);
      }
    return steps;
  };
  CHECK(worst(1.0F) <= 0.50001);
  CHECK(worst(1.02F) > 0.50001);
  got.bytes[5] = static_cast<std::int8_t>(got.bytes[5] + 1);
  CHECK_FALSE(same_quantised(got, quantised_twin(w)));
}

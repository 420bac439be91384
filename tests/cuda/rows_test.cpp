#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cuda/convert.hpp"
#include "kernels/cuda/copy_blocks.hpp"
#include "kernels/cuda/embed.hpp"
#include "kernels/cuda/rms_norm.hpp"
#include "kernels/cuda/silu_mul.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/device_fixture.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cuda;
using namespace foretoken::test;
using reference::Matrix;

namespace {

double tolerance(ElementType type) { return type == ElementType::f32 ? 3e-6 : 5e-3; }

/// Dims around chunks, warps and the rows that fit registers; strides that keep rows aligned or do not.
struct Shape {
  int rows;
  int dim;
  std::int64_t padding;
};

Shape draw_shape(Numbers& draw) {
  constexpr int kDims[] = {1, 7, 8, 63, 64, 256, 264, 1000, 1024};
  return {draw.whole(1, 4), kDims[draw.whole(0, 8)], draw.whole(0, 1) == 0 ? 0 : draw.whole(1, 2) * 4};
}

}  // namespace

TEST_CASE("rms_norm adds, normalises and gathers as its double twin", "[property]") {
  in_all_orders([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Numbers draw{seed};
      Shape shape = draw_shape(draw);
      if (seed == 7) shape.dim = 8192 + 520;  // more than registers keep
      const ElementType type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
      const bool has_delta = draw.whole(0, 2) > 0, gathers = draw.whole(0, 2) == 0;
      const std::int64_t stride = shape.dim + shape.padding;
      Matrix x = draw.matrix(shape.rows, shape.dim, ElementType::f32);
      const Matrix delta = draw.matrix(shape.rows, shape.dim, type);
      DeviceMatrix residual(ElementType::f32, x, stride), added(type, delta, stride);
      DeviceMatrix weights(ElementType::f32, draw.matrix(1, shape.dim, ElementType::f32), shape.dim);
      const std::vector<std::int32_t> index{shape.rows - 1, 0};
      const int out_rows = gathers ? 2 : shape.rows;
      DeviceMatrix out(type, out_rows, shape.dim, stride);
      rms_norm({out_rows, shape.dim, residual.bytes.as<float>(), stride, has_delta ? added.data() : nullptr,
                stride, weights.bytes.as<float>(), 1e-5F, out.data(), stride, type,
                gathers ? index.data() : nullptr},
               nullptr);
      const Matrix before = x;
      for (std::size_t i = 0; has_delta && i < x.values.size(); ++i)
        x.values[i] = static_cast<float>(x.values[i]) + static_cast<float>(delta.values[i]);
      std::vector<double> weight;
      for (int c = 0; c < shape.dim; ++c) weight.push_back(weights.at(0, c));
      Matrix want = reference::rms_norm(x, weight, 1e-5F);
      if (gathers) {
        Matrix some(2, shape.dim);
        for (int r = 0; r < 2; ++r)
          for (int c = 0; c < shape.dim; ++c) some.at(r, c) = want.at(index[static_cast<std::size_t>(r)], c);
        want = some;
      }
      INFO("seed " << seed << ", dim " << shape.dim);
      CHECK(out.excess(want, 1e-6, tolerance(type)) <= 0);
      CHECK(residual.excess(gathers ? before : x, 0, 0) <= 0);
    }
  });
}

TEST_CASE("a row's norm does not depend on its neighbours, in any bit") {
  Numbers draw{3};
  const Matrix x = draw.matrix(5, 264, ElementType::f32);
  DeviceMatrix all(ElementType::f32, x, 264),
      weights(ElementType::f32, draw.matrix(1, 264, ElementType::f32), 264);
  DeviceMatrix out(ElementType::f32, 5, 264, 264), one(ElementType::f32, 1, 264, 264);
  const auto run = [&](const DeviceMatrix& in, int row, int rows, const DeviceMatrix& to) {
    rms_norm({rows, 264, in.bytes.as<float>() + row * 264, 264, nullptr, 0, weights.bytes.as<float>(), 1e-5F,
              to.data(), 264, ElementType::f32, nullptr},
             nullptr);
  };
  run(all, 0, 5, out);
  run(all, 3, 1, one);
  CHECK(std::equal(one.bytes.as<float>(), one.bytes.as<float>() + 264, out.bytes.as<float>() + 3 * 264));
}

TEST_CASE("the checks of norm and SiLU see small faults") {
  Numbers draw{8};
  const Matrix x = draw.matrix(2, 264, ElementType::f32), delta = draw.matrix(2, 264, ElementType::f32);
  const std::vector<double> ones(264, 1.0);
  const std::vector<float> weights(264, 1.0F);
  DeviceMatrix added(ElementType::f32, delta, 264), out(ElementType::f32, 2, 264, 264);
  const Matrix want = reference::rms_norm(x, ones, 1e-5F);
  const auto run = [&](float epsilon, bool has_delta, int dim) {
    DeviceMatrix residual(ElementType::f32, x, 264);
    rms_norm({2, dim, residual.bytes.as<float>(), 264, has_delta ? added.data() : nullptr, 264,
              weights.data(), epsilon, out.data(), 264, ElementType::f32, nullptr},
             nullptr);
    return out.excess(want, 1e-6, tolerance(ElementType::f32));
  };
  CHECK(run(1e-5F, false, 264) <= 0);
  CHECK(run(3e-5F, false, 264) > 0);
  CHECK(run(1e-5F, true, 264) > 0);
  CHECK(run(1e-5F, false, 263) > 0);
  DeviceMatrix pair(ElementType::f32, 2, 528, 528);
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 264; ++c) {
      pair.set(r, c, static_cast<float>(x.at(r, c)));
      pair.set(r, 264 + c, static_cast<float>(delta.at(r, c)));
    }
  silu_mul({2, 264, pair.data(), 528, out.data(), 264, ElementType::f32}, nullptr);
  CHECK(out.excess(reference::silu_mul(x, delta), 1e-7, tolerance(ElementType::f32)) <= 0);
  CHECK(out.excess(reference::silu_mul(delta, x), 1e-7, tolerance(ElementType::f32)) > 0);
}

TEST_CASE("silu_mul agrees with its double twin", "[property]") {
  in_all_orders([] {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Numbers draw{seed};
      const Shape shape = draw_shape(draw);
      const ElementType type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
      const Matrix gate = draw.matrix(shape.rows, shape.dim, type),
                   up = draw.matrix(shape.rows, shape.dim, type);
      DeviceMatrix in(type, shape.rows, 2 * shape.dim, 2 * shape.dim + shape.padding);
      for (int r = 0; r < shape.rows; ++r)
        for (int c = 0; c < shape.dim; ++c) {
          in.set(r, c, static_cast<float>(gate.at(r, c)));
          in.set(r, shape.dim + c, static_cast<float>(up.at(r, c)));
        }
      DeviceMatrix out(type, shape.rows, shape.dim, shape.dim + shape.padding);
      silu_mul({shape.rows, shape.dim, in.data(), in.stride, out.data(), out.stride, type}, nullptr);
      INFO("seed " << seed << ", features " << shape.dim);
      CHECK(out.excess(reference::silu_mul(gate, up), 1e-7, tolerance(type)) <= 0);
    }
  });
}

TEST_CASE("embed copies rows of the table, and zeros for dead ones", "[property]") {
  in_all_orders([] {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Numbers draw{seed};
      const Shape shape = draw_shape(draw);
      const ElementType type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
      const Matrix table = draw.matrix(6, shape.dim, type);
      DeviceMatrix from(type, table, shape.dim),
          out(ElementType::f32, shape.rows, shape.dim, shape.dim + shape.padding);
      std::vector<std::int32_t> tokens;
      Matrix want(shape.rows, shape.dim);
      for (int r = 0; r < shape.rows; ++r) {
        tokens.push_back(draw.whole(-1, 5));
        for (int c = 0; c < shape.dim; ++c)
          want.at(r, c) = tokens.back() < 0 ? 0 : table.at(tokens.back(), c);
      }
      embed({shape.rows, shape.dim, tokens.data(), from.data(), type, out.bytes.as<float>(), out.stride},
            nullptr);
      CHECK(out.excess(want, 0, 0) <= 0);
    }
  });
}

TEST_CASE("conversion rounds as the scalar does at every count and alignment, fill sets every word") {
  for (const int count : {1, 7, 8, 2047, 4099})
    for (const std::size_t shift : {std::size_t{0}, std::size_t{4}}) {
      Numbers draw{static_cast<std::uint64_t>(count)};
      const Matrix m = draw.matrix(1, count, ElementType::f32);
      DeviceMatrix from(ElementType::f32, m, count, shift), to(ElementType::bf16, 1, count, count);
      convert_to_bf16(from.bytes.as<float>(), to.bytes.as<Bf16>(), count, nullptr);
      bool is_same = true;
      for (int i = 0; i < count; ++i) is_same &= to.at(0, i) == to_float(to_bf16(from.at(0, i)));
      CHECK(is_same);
      DeviceBytes words(static_cast<std::size_t>(count) * 4, shift);
      fill_words(words.data(), 0x7fc07fc0U, count, nullptr);
      CHECK(std::all_of(words.as<std::uint32_t>(), words.as<std::uint32_t>() + count,
                        [](std::uint32_t w) { return w == 0x7fc07fc0U; }));
    }
}

TEST_CASE("blocks are copied whole, and nothing beside them") {
  for (const std::size_t bytes : {std::size_t{16}, std::size_t{16 * 1025}, std::size_t{131072}}) {
    DeviceBytes source(bytes * 5), target(bytes * 4);
    std::iota(source.data(), source.data() + source.size(), static_cast<unsigned char>(1));
    const std::vector<std::int32_t> from{4, 1}, to{0, 2};
    copy_blocks({2, bytes, source.data(), target.data(), from.data(), to.data()}, nullptr);
    for (std::size_t b = 0; b < 4; ++b) {
      const unsigned char* got = target.data() + b * bytes;
      if (b % 2 == 0)
        CHECK(std::equal(got, got + bytes, source.data() + bytes * (b == 0 ? 4 : 1)));
      else
        CHECK(std::all_of(got, got + bytes, [](unsigned char c) { return c == 0xff; }));
    }
  }
}

TEST_CASE("launchers refuse shapes that make no sense") {
  CHECK_THROWS_AS(rms_norm({.rows = 1, .dim = 0}, nullptr), LaunchError);
  CHECK_THROWS_AS(silu_mul({.rows = 1, .features = 8, .gate_up_stride = 15, .out_stride = 8}, nullptr),
                  LaunchError);
  CHECK_THROWS_AS(embed({.rows = -1, .dim = 8}, nullptr), LaunchError);
  CHECK_THROWS_AS(copy_blocks({.blocks = 1, .block_bytes = 20}, nullptr), LaunchError);
}

TEST_CASE("e4m3 codes convert back to themselves, and numbers to the nearest code") {
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if ((code & 0x7f) == 0x7f) continue;
    CHECK(fp8_from_bits(fp8_to_bits(byte)) == byte);
    CHECK(std::bit_cast<float>(fp8_small_bits(byte)) * 0x1p120F == std::bit_cast<float>(fp8_to_bits(byte)));
  }
  CHECK(std::bit_cast<float>(fp8_to_bits(0x7e)) == 448.0F);
  CHECK(std::bit_cast<float>(fp8_to_bits(0x01)) == 0.001953125F);
  Numbers draw{5};
  for (int i = 0; i < 20000; ++i) {
    const float x = draw.number(ElementType::f32) * std::exp2(static_cast<float>(draw.whole(-14, 9)));
    const std::uint8_t code = fp8_from_bits(std::bit_cast<std::uint32_t>(x));
    const double error = std::abs(std::bit_cast<float>(fp8_to_bits(code)) - double{x});
    for (const int other : {code - 1, code + 1}) {
      if (other < 0 || other > 255 || (other & 0x7f) == 0x7f || (other ^ code) & 0x80) continue;
      const double beside =
          std::abs(std::bit_cast<float>(fp8_to_bits(static_cast<std::uint8_t>(other))) - double{x});
      REQUIRE((error < beside || (error == beside && code % 2 == 0)));
    }
  }
}

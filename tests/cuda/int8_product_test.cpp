#include "kernels/cuda/int8_product.hpp"

#include "kernels/cuda/quantise_rows.hpp"
#include "kernels/cuda/skinny_kernel.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/product_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;
using cuda::Int8Kernel;
using reference::Matrix;

namespace {

/// One product of int8 weights, and everything it reads and writes.
struct Int8Case {
  Matrix x;
  Matrix w;
  ElementType y_type;
  cuda::Int8Plan plan;
  std::vector<float> workspace;
  Stored input;
  StoredWeights weights;

  Int8Case(Numbers& draw, ElementType x_type, int rows, int columns, int depth, ElementType y_type_,
           const cuda::ProductDevice& device)
      : x(draw.matrix(rows, depth, x_type)),
        w(whole_weights(draw, columns, depth)),
        y_type(y_type_),
        plan(cuda::plan_int8(columns, depth, device)),
        workspace(used_workspace(cuda::int8_workspace_bytes(plan, columns))),
        input(x_type, x, (depth + 15) / 8 * 8),
        weights(cuda::WeightType::int8, w, drawn_scales(draw, columns)) {}

  cuda::Int8ProductArgs arguments(int rows, Stored& y) {
    return {plan,
            rows,
            w.rows,
            w.columns,
            input.data(),
            input.stride,
            input.type,
            weights.bytes.data(),
            weights.scale_data(),
            y.data(),
            y.stride,
            y_type,
            workspace.data()};
  }
  /// y of the first `rows` rows.
  Stored run(int rows) {
    Stored y(y_type, x.rows, w.rows + 3);
    cuda::int8_product(arguments(rows, y), nullptr);
    return y;
  }
  double over(const Stored& y) const {
    return excess_of_product(y, scaled_product(x, w, weights.scales), magnitude(x, w, weights.scales),
                             x.columns);
  }
};

void check_in_all_orders(Int8Case& one) {
  std::vector<Stored> results;
  in_all_orders([&] {
    results.push_back(one.run(one.x.rows));
    CHECK(one.over(results.back()) <= 0);
    CHECK(is_untouched_outside(results.back(), one.x.rows, one.w.rows, one.x.rows));
    CHECK(same_bits(results.front(), results.back(), one.x.rows, one.w.rows));
  });
}

ElementType drawn_type(Numbers& draw) { return draw.whole(0, 1) == 0 ? ElementType::f32 : ElementType::bf16; }

}  // namespace

TEST_CASE("every signed byte becomes its own value in bf16", "[unit]") {
  for (int byte = -128; byte < 128; ++byte) {
    const auto bits = static_cast<std::uint8_t>(byte);
    std::uint32_t low = 0, high = 0;
    cuda::detail::int8_to_bf16(bits | 0x050000U | std::uint32_t{bits} << 24, low, high);
    CHECK(ft::low_float(low) == static_cast<float>(byte));
    CHECK(ft::high_float(low) == 0.0F);
    CHECK(ft::low_float(high) == 5.0F);
    CHECK(ft::high_float(high) == static_cast<float>(byte));
    // The device's way: 128 + the low seven bits, minus 128 or 256, both of them bf16 numbers made of the
    // byte's bits.
    const auto widened = [](std::uint32_t half) { return to_float(Bf16{static_cast<std::uint16_t>(half)}); };
    const std::uint32_t code = 0x4300U | bits;
    CHECK(widened(code & 0xff7fU) + widened((code & 0xff80U) | 0x8000U) == static_cast<float>(byte));
  }
}

TEST_CASE("int8 products of few rows agree with the double twin over odd shapes and slices", "[property]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Numbers draw{seed};
    const int rows = draw.whole(1, 16), columns = draw.whole(1, 90), depth = 16 * draw.whole(1, 100);
    const cuda::ProductDevice device = seed % 2 == 0
                                           ? cuda::ProductDevice{draw.whole(1, 9), 232448}
                                           : narrow_device(128 * draw.whole(1, 3), 1, draw.whole(16, 40));
    Int8Case one(draw, ElementType::bf16, rows, columns, depth, drawn_type(draw), device);
    INFO("seed " << seed << ' ' << rows << 'x' << columns << 'x' << depth << " slices "
                 << one.plan.skinny.slices);
    REQUIRE(cuda::int8_kernel(ElementType::bf16, rows, depth) == Int8Kernel::skinny);
    check_in_all_orders(one);
  }
}

TEST_CASE("int8 products of many rows agree with the double twin over odd shapes", "[property]") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Numbers draw{seed};
    const int rows = seed % 2 == 0 ? draw.whole(17, 64) : draw.whole(65, 150);
    const int columns = draw.whole(1, 200), depth = 16 * draw.whole(1, seed % 2 == 0 ? 100 : 30);
    Int8Case one(draw, ElementType::bf16, rows, columns, depth, drawn_type(draw), {});
    INFO("seed " << seed << ' ' << rows << 'x' << columns << 'x' << depth);
    REQUIRE(cuda::int8_kernel(ElementType::bf16, rows, depth) ==
            (rows <= 64 ? Int8Kernel::narrow : Int8Kernel::wide));
    check_in_all_orders(one);
  }
}

TEST_CASE("int8 products of f32 rows and of odd depths agree with the double twin", "[property]") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Numbers draw{seed};
    const auto x_type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
    const int depth = seed % 2 == 0 ? draw.whole(1, 99) : 8 + 16 * draw.whole(0, 9);
    Int8Case one(draw, x_type, draw.whole(1, 40), draw.whole(1, 90), depth, drawn_type(draw), {});
    REQUIRE(cuda::int8_kernel(x_type, one.x.rows, depth) == Int8Kernel::plain);
    check_in_all_orders(one);
  }
}

TEST_CASE("a row of an int8 product is the same bits whatever the number of rows that one kernel takes",
          "[property]") {
  for (const cuda::ProductDevice& device : {cuda::ProductDevice{2, 232448}, narrow_device(256, 1, 9)}) {
    Numbers draw{11};
    Int8Case one(draw, ElementType::bf16, 16, 37, 1232, ElementType::f32, device);
    const Stored all = one.run(16);
    for (int rows = 1; rows < 16; ++rows) CHECK(same_bits(one.run(rows), all, rows, 37));
  }
  Numbers draw{12};
  Int8Case wide(draw, ElementType::bf16, 130, 40, 208, ElementType::f32, {});
  const Stored all_wide = wide.run(130);
  for (const int rows : {65, 100, 128}) CHECK(same_bits(wide.run(rows), all_wide, rows, 40));
  Int8Case narrow(draw, ElementType::bf16, 64, 140, 1616, ElementType::f32, {});
  REQUIRE(narrow.plan.narrow_slices == 3);
  const Stored all_narrow = narrow.run(64);
  for (const int rows : {17, 33, 63}) CHECK(same_bits(narrow.run(rows), all_narrow, rows, 140));
}

TEST_CASE("quantised weights multiply as the numbers that they stand for", "[property]") {
  Numbers draw{21};
  const Matrix w = draw.matrix(50, 320, ElementType::bf16);
  Int8Case one(draw, ElementType::bf16, 6, 50, 320, ElementType::f32, {});
  const StoredWeights full(cuda::WeightType::bf16, w);
  cuda::quantise_rows(
      {50, 320, full.data(), ElementType::bf16, one.weights.bytes.data(), one.weights.scales.data()},
      nullptr);
  const Stored y = one.run(6);
  // Each weight is off by half a step at most, and errors of random sign add up as roots: 3 times that is
  // rare.
  const double step = 1.0 / 127, spread = std::sqrt(320.0 / 3) * step * std::sqrt(1.0 / 12);
  CHECK(excess(y, reference::product(one.x, w), 5 * spread, 0) <= 0);
  one.weights.scales[3] *= 1.5F;
  CHECK(excess(one.run(6), reference::product(one.x, w), 5 * spread, 0) > 0);
}

TEST_CASE("seeded fault: int8 products with a wrong byte, scale, plan or workspace are noticed",
          "[property]") {
  for (const int rows : {9, 40, 70}) {
    Numbers draw{5};
    Int8Case good(draw, ElementType::bf16, rows, 40, 1552, ElementType::f32, narrow_device(640, 1, 9));
    REQUIRE(good.plan.narrow_slices == 3);
    REQUIRE(good.plan.skinny.slices == 3);
    CHECK(good.over(good.run(rows)) <= 0);
    Int8Case byte = good, scale = good, depth = good;
    byte.weights.bytes[40 * 1552 - 1] = static_cast<std::int8_t>(byte.weights.bytes[40 * 1552 - 1] ^ 16);
    CHECK(good.over(byte.run(rows)) > 0);
    scale.weights.scales[39] *= 1.01F;
    CHECK(good.over(scale.run(rows)) > 0);
    depth.input.set(rows - 1, 1551, 4.0F);
    CHECK(good.over(depth.run(rows)) > 0);
    if (rows > 64) continue;
    good.workspace = used_workspace(cuda::int8_workspace_bytes(good.plan, 40));
    reinterpret_cast<int*>(good.workspace.data())[0] = 1;
    CHECK(good.over(good.run(rows)) > 0);
  }
}

TEST_CASE("int8 products refuse what they cannot do", "[unit]") {
  Numbers draw{1};
  Int8Case one(draw, ElementType::bf16, 2, 5, 32, ElementType::f32, {});
  Stored y(ElementType::f32, 2, 8);
  auto args = one.arguments(2, y);
  args.scales = nullptr;
  CHECK_THROWS_AS(cuda::int8_product(args, nullptr), cuda::LaunchError);
  args = one.arguments(2, y);
  args.plan.skinny.slices = 0;
  CHECK_THROWS_AS(cuda::int8_product(args, nullptr), cuda::LaunchError);
  args = one.arguments(2, y);
  ++args.weights;
  CHECK_THROWS_AS(cuda::int8_product(args, nullptr), cuda::LaunchError);
  CHECK(cuda::int8_product_supports(ElementType::f32, 3, 5, 7, {}));
  CHECK(cuda::int8_product_supports(ElementType::bf16, 300, 5, 16, {}));
  CHECK_FALSE(cuda::int8_product_supports(ElementType::bf16, 3, 5, 16, {132, 1000}));
}

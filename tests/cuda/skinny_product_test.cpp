#include <algorithm>

#include "kernels/cuda/skinny_kernel.hpp"
#include "kernels/cuda/skinny_product.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/product_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;
using reference::Matrix;

namespace {

/// One product of few rows, and everything it reads and writes.
struct SkinnyCase {
  Matrix x;
  Matrix w;
  ElementType y_type = ElementType::f32;
  cuda::SkinnyPlan plan;
  std::vector<float> workspace;
  Stored input;
  StoredWeights weights;

  SkinnyCase(const Matrix& x_, const Matrix& w_, ElementType y_type_, const cuda::ProductDevice& device)
      : x(x_),
        w(w_),
        y_type(y_type_),
        plan(cuda::plan_skinny(w.rows, w.columns, 2, device)),
        workspace(used_workspace(cuda::skinny_workspace_bytes(plan))),
        input(ElementType::bf16, x, (x.columns + 15) / 8 * 8),
        weights(cuda::WeightType::bf16, w) {}

  /// y of the first `rows` rows.
  Stored run(int rows) {
    Stored y(y_type, x.rows, w.rows + 3);
    cuda::SkinnyProductArgs args{
        plan,     rows,     w.rows, w.columns,       input.halves.data(), input.stride, weights.halves.data(),
        y.data(), y.stride, y_type, workspace.data()};
    cuda::skinny_product(args, nullptr);
    return y;
  }
  /// The same through the kernel with other arithmetic.
  template <class Weights>
  Stored run_with(int rows) {
    Stored y(y_type, x.rows, w.rows + 3);
    cuda::detail::SkinnyParams p{};
    p.weights = reinterpret_cast<const unsigned char*>(weights.halves.data());
    p.x = input.halves.data();
    p.x_stride = input.stride;
    p.y = y.data();
    p.y_stride = y.stride;
    p.y_is_f32 = y_type == ElementType::f32;
    p.rows = rows;
    p.columns = w.rows;
    p.depth = w.columns;
    p.plan = plan;
    cuda::detail::place_workspace(p, workspace.data());
    cuda::detail::launch_skinny<Weights>(p, nullptr);
    return y;
  }
  double over(const Stored& y) const {
    return excess_of_product(y, reference::product(x, w), magnitude(x, w, {}), x.columns);
  }
};

SkinnyCase drawn_case(std::uint64_t seed) {
  Numbers draw{seed};
  const int rows = draw.whole(1, 16), columns = draw.whole(1, 90), depth = 8 * draw.whole(1, 120);
  const cuda::ProductDevice device = seed % 2 == 0
                                         ? cuda::ProductDevice{draw.whole(1, 9), 232448}
                                         : narrow_device(64 * draw.whole(1, 4), 2, draw.whole(16, 40));
  const Matrix x = draw.matrix(rows, depth, ElementType::bf16),
               w = draw.matrix(columns, depth, ElementType::bf16);
  return {x, w, seed % 3 == 0 ? ElementType::bf16 : ElementType::f32, device};
}

// Kernels with a fault each.
struct LosesHalfTheDepth : cuda::detail::SkinnyBf16 {
  template <int kEights>
  static void multiply(float (&sums)[kEights][4], const uint4& upper, const uint4& lower,
                       const uint4 (&x)[kEights][1]) {
    SkinnyBf16::multiply<kEights>(sums, upper, lower, x);
    if (threadIdx.x == 7) sums[0][1] = 0;
  }
};
struct MisplacesX : cuda::detail::SkinnyBf16 {
  static int place_of_unit(int unit) { return unit ^ 1; }
};
struct MindsTheNumberOfRows : cuda::detail::SkinnyBf16 {
  template <int kEights>
  static void multiply(float (&sums)[kEights][4], const uint4& upper, const uint4& lower,
                       const uint4 (&x)[kEights][1]) {
    if (kEights == 1) return SkinnyBf16::multiply<kEights>(sums, upper, lower, x);
    float own[kEights][4] = {};
    SkinnyBf16::multiply<kEights>(own, upper, lower, x);
    for (int e = 0; e < kEights; ++e)
      for (int i = 0; i < 4; ++i) sums[e][i] += own[e][i];
  }
};

}  // namespace

TEST_CASE("plans of skinny products cover the matrix, fit the device and depend on neither rows",
          "[property]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Numbers draw{seed};
    const int columns = draw.whole(1, 200000), depth = 8 * draw.whole(1, 4000), bytes = draw.whole(1, 2);
    const cuda::ProductDevice device{draw.whole(40, 160), draw.whole(0, 1) == 0 ? 232448 : 166912};
    const cuda::SkinnyPlan plan = cuda::plan_skinny(columns, depth, bytes, device);
    INFO("seed " << seed << ' ' << columns << 'x' << depth);
    REQUIRE(plan.slices >= 1);
    CHECK(plan.tiles == (columns + 15) / 16);
    CHECK(plan.slice_depth % (128 / bytes) == 0);
    CHECK(plan.slices * plan.slice_depth >= depth);
    CHECK((plan.slices - 1) * plan.slice_depth < depth);
    CHECK(plan.groups >= 1);
    CHECK(plan.groups <= plan.tiles);
    CHECK(plan.groups * plan.slices <= device.multiprocessors);
    CHECK(cuda::detail::skinny_shared_bytes(plan.slice_depth, 128 / bytes, 2) <= device.shared_bytes);
    CHECK(cuda::detail::skinny_shared_bytes(plan.slice_depth, 128 / bytes, 1) <= device.shared_bytes);
  }
  CHECK(cuda::plan_skinny(4096, 4096, 2, {}).slices == 1);
  CHECK(cuda::plan_skinny(4096, 14336, 2, {}).slices == 4);
  CHECK(cuda::plan_skinny(64, 64, 2, {132, 1000}).slices == 0);
}

TEST_CASE("skinny products agree with the double twin over odd shapes, slices and thread orders",
          "[property]") {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SkinnyCase one = drawn_case(seed);
    INFO("seed " << seed << ' ' << one.x.rows << 'x' << one.w.rows << 'x' << one.x.columns << " slices "
                 << one.plan.slices);
    std::vector<Stored> results;
    in_all_orders([&] {
      results.push_back(one.run(one.x.rows));
      CHECK(one.over(results.back()) <= 0);
      CHECK(is_untouched_outside(results.back(), one.x.rows, one.w.rows, one.x.rows));
      CHECK(same_bits(results.front(), results.back(), one.x.rows, one.w.rows));
    });
  }
}

TEST_CASE("a row of a skinny product is the same bits for 1 to 16 rows", "[property]") {
  Numbers draw{11};
  const Matrix x = draw.matrix(16, 712, ElementType::bf16), w = draw.matrix(37, 712, ElementType::bf16);
  for (const cuda::ProductDevice& device : {cuda::ProductDevice{2, 232448}, narrow_device(256, 2, 9)}) {
    SkinnyCase one(x, w, ElementType::f32, device);
    const Stored all = one.run(16);
    for (int rows = 1; rows < 16; ++rows) {
      const Stored some = one.run(rows);
      INFO("rows " << rows << " slices " << one.plan.slices);
      CHECK(same_bits(some, all, rows, w.rows));
      CHECK(is_untouched_outside(some, rows, w.rows, 16));
    }
    CHECK_FALSE(
        same_bits(one.run_with<MindsTheNumberOfRows>(16), one.run_with<MindsTheNumberOfRows>(8), 8, 37));
  }
}

TEST_CASE("skinny products take the values that bf16 holds and refuse what they cannot do", "[unit]") {
  Matrix x(2, 8), w(1, 8);
  w.at(0, 0) = 1;
  x.at(0, 0) = -3.0e38;
  x.at(1, 7) = 5;
  SkinnyCase one(x, w, ElementType::f32, {});
  const Stored y = one.run(2);
  CHECK(y.at(0, 0) == one.input.at(0, 0));
  CHECK(y.at(1, 0) == 0);
  CHECK(cuda::skinny_product_supports(16, 5, 8, {}));
  CHECK_FALSE(cuda::skinny_product_supports(17, 5, 8, {}));
  CHECK_FALSE(cuda::skinny_product_supports(1, 5, 12, {}));
  CHECK_FALSE(cuda::skinny_product_supports(0, 5, 8, {}));
  cuda::SkinnyProductArgs args{
      one.plan,         17,     1, 8, one.input.halves.data(), 8, one.weights.halves.data(), nullptr, 1,
      ElementType::f32, nullptr};
  CHECK_THROWS_AS(cuda::skinny_product(args, nullptr), cuda::LaunchError);
  args.rows = 1;
  args.depth = 4;
  CHECK_THROWS_AS(cuda::skinny_product(args, nullptr), cuda::LaunchError);
  args.depth = 8;
  args.x = one.input.halves.data() + 1;
  CHECK_THROWS_AS(cuda::skinny_product(args, nullptr), cuda::LaunchError);
}

TEST_CASE("seeded fault: skinny products that lose sums, misplace x or find a used workspace are noticed",
          "[property]") {
  Numbers draw{5};
  const Matrix x = draw.matrix(9, 328, ElementType::bf16), w = draw.matrix(40, 328, ElementType::bf16);
  SkinnyCase one(x, w, ElementType::f32, narrow_device(128, 2, 9));
  REQUIRE(one.plan.slices == 3);
  CHECK(one.over(one.run_with<cuda::detail::SkinnyBf16>(9)) <= 0);
  CHECK(one.over(one.run_with<LosesHalfTheDepth>(9)) > 0);
  CHECK(one.over(one.run_with<MisplacesX>(9)) > 0);
  one.workspace = used_workspace(cuda::skinny_workspace_bytes(one.plan));
  reinterpret_cast<int*>(one.workspace.data())[0] = 1;
  CHECK(one.over(one.run(9)) > 0);
  Stored y = one.run(9);
  y.set(0, 40, 1.0F);
  CHECK_FALSE(is_untouched_outside(y, 9, 40, 9));
}

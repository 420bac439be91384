#include "kernels/cuda/product_simple.hpp"

#include "kernels/cuda/simt/product_host.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/product_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;
using cuda::WeightType;
using reference::Matrix;

namespace {

/// One plain product of any mix of types.
struct PlainCase {
  Matrix x;
  Matrix w;
  ElementType y_type;
  Stored input;
  StoredWeights weights;

  template <class Product>
  Stored run(Product&& product) {
    Stored y(y_type, x.rows, w.rows + 3);
    cuda::ProductArgs args;
    args.rows = x.rows;
    args.columns = w.rows;
    args.depth = x.columns;
    args.x = input.data();
    args.x_stride = input.stride;
    args.x_type = input.type;
    args.weights = weights.data();
    args.weight_type = weights.type;
    args.scales = weights.scale_data();
    args.y = y.data();
    args.y_stride = y.stride;
    args.y_type = y_type;
    product(args);
    return y;
  }
  double over(const Stored& y) const {
    return excess_of_product(y, scaled_product(x, w, weights.scales), magnitude(x, w, weights.scales),
                             x.columns);
  }
};

PlainCase plain_case(std::uint64_t seed, int rows, int columns, int depth) {
  Numbers draw{seed};
  const auto x_type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
  const auto type = static_cast<WeightType>(seed / 2 % 3);
  const Matrix x = draw.matrix(rows, depth, x_type);
  const Matrix w =
      type == WeightType::int8
          ? whole_weights(draw, columns, depth)
          : draw.matrix(columns, depth, type == WeightType::f32 ? ElementType::f32 : ElementType::bf16);
  const std::vector<float> scales =
      type == WeightType::int8 ? drawn_scales(draw, columns) : std::vector<float>{};
  return {x, w, seed % 5 == 0 ? ElementType::bf16 : ElementType::f32, Stored(x_type, x, depth + 1),
          StoredWeights(type, w, scales)};
}

const auto device_product = [](const cuda::ProductArgs& args) { cuda::product_simple(args, nullptr); };
const auto host_product = [](const cuda::ProductArgs& args) { cuda::simt::product_host(args); };

}  // namespace

TEST_CASE("plain products agree with the double twin in every mix of types and thread order", "[property]") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Numbers draw{seed + 1000};
    PlainCase one = plain_case(seed, draw.whole(1, 80), draw.whole(1, 140), draw.whole(1, 70));
    INFO("seed " << seed << ' ' << one.x.rows << 'x' << one.w.rows << 'x' << one.x.columns);
    std::vector<Stored> results;
    in_all_orders([&] {
      results.push_back(one.run(device_product));
      CHECK(one.over(results.back()) <= 0);
      CHECK(is_untouched_outside(results.back(), one.x.rows, one.w.rows, one.x.rows));
      CHECK(same_bits(results.front(), results.back(), one.x.rows, one.w.rows));
    });
    const Stored host = one.run(host_product);
    CHECK(one.over(host) <= 0);
    CHECK(is_untouched_outside(host, one.x.rows, one.w.rows, one.x.rows));
  }
}

TEST_CASE("a row of a plain product does not depend, in any bit, on its batch mates", "[property]") {
  PlainCase all = plain_case(3, 70, 33, 50);
  for (const int rows : {1, 2, 5, 64, 65}) {
    PlainCase some = plain_case(3, 70, 33, 50);
    some.x.rows = rows;
    CHECK(same_bits(some.run(device_product), all.run(device_product), rows, 33));
    CHECK(same_bits(some.run(host_product), all.run(host_product), rows, 33));
  }
}

TEST_CASE("seeded fault: a plain product with a wrong scale, weight or row is noticed", "[property]") {
  PlainCase one = plain_case(4, 5, 20, 30);
  REQUIRE(one.weights.type == WeightType::int8);
  for (const auto& product : {std::function<void(const cuda::ProductArgs&)>(device_product),
                              std::function<void(const cuda::ProductArgs&)>(host_product)}) {
    PlainCase scale = one, weight = one, row = one;
    scale.weights.scales[19] *= 1.001F;
    CHECK(one.over(scale.run(product)) > 0);
    weight.weights.bytes[0] = static_cast<std::int8_t>(weight.weights.bytes[0] ^ 1);
    CHECK(one.over(weight.run(product)) > 0);
    row.input.set(4, 29, 3.0F);
    CHECK(one.over(row.run(product)) > 0);
    CHECK_FALSE(same_bits(row.run(product), one.run(product), 5, 20));
  }
}

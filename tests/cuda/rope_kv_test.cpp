#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cuda/rope_kv.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/device_fixture.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cuda;
using namespace foretoken::test;
using reference::Matrix;

namespace {

constexpr double kTheta = 10000;

/// One drawn call and its arrays.
struct Case {
  Numbers draw;
  int rows, query_heads;
  KvLayout layout;
  int layer;
  ElementType type;
  bool has_bias;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> slots;
  std::vector<float> cosine, sine;
  Matrix qkv;
  std::vector<float> bias;

  Case(std::uint64_t seed, KvType kv_type)
      : draw{seed},
        rows(draw.whole(1, 5)),
        query_heads(0),
        layout{kv_type, draw.whole(1, 3), draw.whole(1, 3), draw.whole(1, 20), draw.whole(1, 16) * 16},
        layer(draw.whole(0, layout.layers - 1)),
        type(seed % 2 == 0 ? ElementType::f32 : ElementType::bf16),
        has_bias(draw.whole(0, 1) == 1) {
    query_heads = layout.kv_heads * draw.whole(1, 3);
    const int half = layout.head_dim / 2, columns = (query_heads + 2 * layout.kv_heads) * layout.head_dim;
    cosine.resize(static_cast<std::size_t>(50 * half));
    sine.resize(cosine.size());
    cpu::fill_rope_table(50, layout.head_dim, kTheta, cosine.data(), sine.data());
    qkv = draw.matrix(rows, columns, type);
    // Slots all over the pool, each at most once.
    const int tokens = kBlocks * layout.block_tokens, step = draw.whole(1, 3);
    for (int r = 0; r < rows; ++r) {
      positions.push_back(draw.whole(0, 49));
      slots.push_back(r == 1 ? -1 : (tokens - 1 - r * step) % tokens);
    }
    for (int c = 0; c < columns; ++c) bias.push_back(has_bias ? draw.number(ElementType::f32) : 0.0F);
  }
  static constexpr int kBlocks = 16;

  /// What the rotated columns should be.
  Matrix rotated() const {
    const int rotating = (query_heads + layout.kv_heads) * layout.head_dim;
    Matrix all = qkv, part(rows, rotating);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < qkv.columns; ++c) {
        all.at(r, c) += bias[static_cast<std::size_t>(c)];
        if (c < rotating) part.at(r, c) = all.at(r, c);
      }
    part = reference::rope(part, {positions.begin(), positions.end()}, layout.head_dim, kTheta);
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < rotating; ++c) all.at(r, c) = part.at(r, c);
    return all;
  }
};

/// The error that storing a number beside others of at most `most` may bring.
double allowed(const Case& c, double x, double most) {
  const double activation = 2e-6;
  switch (c.layout.type) {
    case KvType::f32: return activation;
    case KvType::bf16: return activation + std::abs(x) * 0.00391;
    case KvType::int8: return activation + most / 127 * 0.5001;
    default: return activation + std::max(std::abs(x) / 16 * 1.0001, most / 448 * 0.00098);
  }
}

/// By how much the cache is further from what it should hold than it may be; at most 0 when all is well.
double cache_excess(const Case& c, const Matrix& want, const DeviceBytes& pool) {
  double worst = -1;
  for (int r = 0; r < c.rows; ++r) {
    const std::int64_t slot = c.slots[static_cast<std::size_t>(r)];
    if (slot < 0) continue;
    for (int h = 0; h < 2 * c.layout.kv_heads; ++h) {
      const int first = (c.query_heads + h) * c.layout.head_dim;
      double most = 0;
      for (int d = 0; d < c.layout.head_dim; ++d) most = std::max(most, std::abs(want.at(r, first + d)));
      for (int d = 0; d < c.layout.head_dim; ++d) {
        const double x = want.at(r, first + d);
        const double got =
            cached_number(c.layout, pool.data(), slot, c.layer,
                          h < c.layout.kv_heads ? KvPart::key : KvPart::value, h % c.layout.kv_heads, d);
        const double over = std::abs(got - x) - allowed(c, x, most);
        if (!(over <= worst)) worst = std::isnan(over) ? 1e30 : over;
      }
    }
  }
  return worst;
}

RopeKvArgs args_of(const Case& c, const DeviceMatrix& in, const DeviceMatrix& q, const DeviceBytes& pool) {
  return {c.rows,
          c.query_heads,
          c.layout,
          c.layer,
          in.data(),
          in.stride,
          c.has_bias ? c.bias.data() : nullptr,
          c.positions.data(),
          c.slots.data(),
          c.cosine.data(),
          c.sine.data(),
          pool.data(),
          q.data(),
          q.stride,
          c.type};
}

}  // namespace

TEST_CASE("rope_kv rotates, adds the bias and writes the cache in every format", "[property]") {
  in_all_orders([] {
    for (std::uint64_t seed = 0; seed < 48; ++seed) {
      const Case c(seed, static_cast<KvType>(seed / 2 % 4));
      INFO("seed " << seed << ", head_dim " << c.layout.head_dim);
      DeviceMatrix in(c.type, c.qkv, c.qkv.columns + 6),
          q(c.type, c.rows, c.query_heads * c.layout.head_dim, c.query_heads * c.layout.head_dim + 2);
      const DeviceBytes pool(static_cast<std::size_t>(c.layout.block_bytes()) * Case::kBlocks);
      rope_kv(args_of(c, in, q, pool), nullptr);
      const Matrix want = c.rotated();
      Matrix queries(c.rows, q.columns);
      for (int r = 0; r < c.rows; ++r)
        for (int i = 0; i < q.columns; ++i) queries.at(r, i) = want.at(r, i);
      CHECK(q.excess(queries, 2e-6, c.type == ElementType::f32 ? 0 : 0.004) <= 0);
      CHECK(cache_excess(c, want, pool) <= 0);
    }
  });
}

TEST_CASE("rope_kv writes the slots it is given and not a byte more") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Case c(seed, static_cast<KvType>(seed / 2));
    DeviceMatrix in(c.type, c.qkv, c.qkv.columns),
        q(c.type, c.rows, c.query_heads * c.layout.head_dim, c.query_heads * c.layout.head_dim);
    const DeviceBytes pool(static_cast<std::size_t>(c.layout.block_bytes()) * Case::kBlocks);
    rope_kv(args_of(c, in, q, pool), nullptr);
    // Blank what must have been written; what is left must be as it was.
    for (const std::int64_t slot : c.slots) {
      if (slot < 0) continue;
      const std::int64_t block = slot / c.layout.block_tokens, offset = slot % c.layout.block_tokens;
      const auto bytes = static_cast<std::size_t>(c.layout.head_dim * kv_element_bytes(c.layout.type));
      for (const KvPart part : {KvPart::key, KvPart::value})
        for (int h = 0; h < c.layout.kv_heads; ++h) {
          std::memset(pool.data() + page_offset_bytes(c.layout, block, c.layer, part, h) +
                          offset * static_cast<std::int64_t>(bytes),
                      0xff, bytes);
          if (has_scales(c.layout.type))
            std::memset(pool.data() + scale_offset_bytes(c.layout, block, c.layer, part, h) + offset * 4,
                        0xff, 4);
        }
    }
    INFO("seed " << seed);
    CHECK(
        std::all_of(pool.data(), pool.data() + pool.size(), [](unsigned char byte) { return byte == 0xff; }));
  }
}

TEST_CASE("the check of the cache sees a wrong angle, bias, slot, layer or scale") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Case c(seed, static_cast<KvType>(seed / 2));
    c.layout.layers = 2;
    c.layer = 0;
    c.has_bias = true;
    for (std::size_t i = 0; i < c.bias.size(); ++i) c.bias[i] = 0.25F;
    for (std::int32_t& position : c.positions) position = 7;
    const Matrix want = c.rotated();
    DeviceMatrix in(c.type, c.qkv, c.qkv.columns),
        q(c.type, c.rows, c.query_heads * c.layout.head_dim, c.query_heads * c.layout.head_dim);
    const auto excess_after = [&](auto&& spoil) {
      const DeviceBytes pool(static_cast<std::size_t>(c.layout.block_bytes()) * Case::kBlocks);
      RopeKvArgs args = args_of(c, in, q, pool);
      spoil(args);
      rope_kv(args, nullptr);
      return cache_excess(c, want, pool);
    };
    std::vector<std::int32_t> positions = c.positions;
    for (std::int32_t& position : positions) ++position;
    std::vector<std::int64_t> slots = c.slots;
    for (std::int64_t& slot : slots) slot = slot > 0 ? slot - 1 : slot;
    INFO("seed " << seed);
    CHECK(excess_after([](RopeKvArgs&) {}) <= 0);
    CHECK(excess_after([&](RopeKvArgs& args) { args.positions = positions.data(); }) > 0);
    CHECK(excess_after([](RopeKvArgs& args) { args.bias = nullptr; }) > 0);
    CHECK(excess_after([&](RopeKvArgs& args) { args.slots = slots.data(); }) > 0);
    CHECK(excess_after([](RopeKvArgs& args) { args.layer = 1; }) > 0);
    CHECK(excess_after([](RopeKvArgs& args) { std::swap(args.cosine, args.sine); }) > 0);
    if (has_scales(c.layout.type)) {
      const DeviceBytes pool(static_cast<std::size_t>(c.layout.block_bytes()) * Case::kBlocks);
      rope_kv(args_of(c, in, q, pool), nullptr);
      const std::int64_t block = c.slots[0] / c.layout.block_tokens,
                         offset = c.slots[0] % c.layout.block_tokens;
      float scale;
      unsigned char* at =
          pool.data() + scale_offset_bytes(c.layout, block, c.layer, KvPart::value, 0) + offset * 4;
      std::memcpy(&scale, at, 4);
      scale *= 1.1F;
      std::memcpy(at, &scale, 4);
      CHECK(cache_excess(c, want, pool) > 0);
    }
  }
}

TEST_CASE("rope_kv refuses shapes that it cannot do") {
  RopeKvArgs args{.rows = 1, .query_heads = 1, .layout = {.head_dim = 24}};
  CHECK_THROWS_AS(rope_kv(args, nullptr), LaunchError);
  args.layout.head_dim = 272;
  CHECK_THROWS_AS(rope_kv(args, nullptr), LaunchError);
  args.layout.head_dim = 64;
  args.layer = 1;
  CHECK_THROWS_AS(rope_kv(args, nullptr), LaunchError);
}

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/cuda/attention_simple.hpp"
#include "kernels/cuda/decode_attention.hpp"
#include "kernels/cuda/prefill_attention.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/device_fixture.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cuda;
using namespace foretoken::test;
using reference::Matrix;

namespace {

constexpr int kMultiprocessors = 4;

/// One sequence of a batch: tokens cached before this step, and new ones.
struct Length {
  int before;
  int rows;
};

/// A batch in memory as kernels see it, its pages all over a pool of NaN, and what attention should make of
/// it.
struct Batch {
  KvLayout layout;
  int layer;
  int query_heads;
  ElementType activation;
  std::vector<std::int32_t> row_begin{0}, context, page_begin{0}, pages;
  std::vector<unsigned char> pool;
  std::vector<Matrix> queries;
  Matrix expected;
  std::vector<float> q_floats;
  std::vector<Bf16> q_halves;

  Batch(KvType type, int head_dim, int kv_heads, int group, int block_tokens, ElementType activation_,
        const std::vector<Length>& lengths, std::uint64_t seed, int shuffle = 11)
      : layout{type, 2, kv_heads, block_tokens, head_dim},
        layer(1),
        query_heads(kv_heads * group),
        activation(activation_) {
    Numbers draw{seed};
    int blocks = 0, rows = 0;
    for (const Length& length : lengths) {
      blocks += (length.before + length.rows + block_tokens - 1) / block_tokens;
      rows += length.rows;
      row_begin.push_back(rows);
      context.push_back(length.before + length.rows);
    }
    // A permutation of more blocks than are used: the pool's size and the step have no common divisor.
    const int size = blocks + 5;
    int step = shuffle;
    while (std::gcd(step, size) != 1) ++step;
    for (int i = 0; i < blocks; ++i) pages.push_back((i * step + 3) % size);
    pool.assign(static_cast<std::size_t>(size * layout.block_bytes()), 0xff);
    const int columns = query_heads * head_dim;
    expected = Matrix(rows, columns);
    int page = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const int tokens = context[s];
      const Matrix keys = cache(draw, tokens, page, KvPart::key),
                   values = cache(draw, tokens, page, KvPart::value);
      page += (tokens + block_tokens - 1) / block_tokens;
      page_begin.push_back(page);
      if (lengths[s].rows == 0) continue;
      const Matrix q = draw.matrix(lengths[s].rows, columns, activation);
      const Matrix out = reference::attention(q, keys, values, head_dim, scale());
      std::copy(out.values.begin(), out.values.end(),
                expected.values.begin() + static_cast<std::ptrdiff_t>(row_begin[s]) * columns);
      for (const double x : q.values) {
        q_floats.push_back(static_cast<float>(x));
        q_halves.push_back(to_bf16(static_cast<float>(x)));
      }
    }
  }

  double scale() const { return 1.0 / std::sqrt(static_cast<double>(layout.head_dim)); }

  /// Draws what a sequence has cached, stores it, and returns it as it reads after storing.
  Matrix cache(Numbers& draw, int tokens, int page, KvPart part) {
    Matrix all(tokens, layout.kv_heads * layout.head_dim);
    for (int token = 0; token < tokens; ++token)
      for (int head = 0; head < layout.kv_heads; ++head) {
        const std::int64_t block = pages[static_cast<std::size_t>(page + token / layout.block_tokens)];
        const int slot = token % layout.block_tokens;
        if (has_scales(layout.type)) {
          const float token_scale = 0.004F * static_cast<float>(draw.whole(1, 5));
          std::memcpy(&pool[static_cast<std::size_t>(scale_offset_bytes(layout, block, layer, part, head)) +
                            static_cast<std::size_t>(slot) * 4],
                      &token_scale, 4);
        }
        for (int dim = 0; dim < layout.head_dim; ++dim) store(draw, block, slot, part, head, dim);
        for (int dim = 0; dim < layout.head_dim; ++dim)
          all.at(token, head * layout.head_dim + dim) =
              cached_number(layout, pool.data(), block * layout.block_tokens + slot, layer, part, head, dim);
      }
    return all;
  }

  void store(Numbers& draw, std::int64_t block, int slot, KvPart part, int head, int dim) {
    unsigned char* at = &pool[static_cast<std::size_t>(page_offset_bytes(layout, block, layer, part, head) +
                                                       (std::int64_t{slot} * layout.head_dim + dim) *
                                                           kv_element_bytes(layout.type))];
    const float x = draw.number(ElementType::bf16);
    const Bf16 half = to_bf16(x);
    const auto byte = static_cast<std::int8_t>(draw.whole(-127, 127));
    if (layout.type == KvType::f32) std::memcpy(at, &x, 4);
    if (layout.type == KvType::bf16) std::memcpy(at, &half, 2);
    if (layout.type == KvType::int8) std::memcpy(at, &byte, 1);
    if (layout.type == KvType::fp8) *at = fp8_from_bits(std::bit_cast<std::uint32_t>(x * 200.0F));
  }

  AttentionArgs args(DeviceMatrix& out) const {
    AttentionArgs a;
    a.batch = {static_cast<int>(context.size()), row_begin.data(), context.data(), page_begin.data(),
               pages.data()};
    a.rows = row_begin.back();
    a.query_heads = query_heads;
    a.layout = layout;
    a.layer = layer;
    a.pool = pool.data();
    a.q = activation == ElementType::f32 ? static_cast<const void*>(q_floats.data()) : q_halves.data();
    a.q_stride = std::int64_t{query_heads} * layout.head_dim;
    a.out = out.data();
    a.out_stride = a.q_stride;
    a.activation = activation;
    a.scale = static_cast<float>(scale());
    return a;
  }

  DeviceMatrix output() const {
    return DeviceMatrix(activation, row_begin.back(), query_heads * layout.head_dim,
                        std::int64_t{query_heads} * layout.head_dim);
  }

  double simple_error() const {
    DeviceMatrix out = output();
    attention_simple(args(out), nullptr);
    return out.excess(expected, 0, 0);
  }

  double prefill_error() const {
    DeviceMatrix out = output();
    run_prefill(out, static_cast<int>(context.size()));
    return out.excess(expected, 0, 0);
  }

  void run_prefill(DeviceMatrix& out, int sequences) const {
    const int group = query_heads / layout.kv_heads;
    std::vector<PrefillItem> items(
        static_cast<std::size_t>(prefill_items_max(row_begin.back(), sequences, group)));
    PrefillAttentionArgs a{args(out), items.data(), 0};
    a.item_count = plan_prefill(row_begin, context, sequences, group, items.data());
    prefill_attention(a, nullptr);
  }

  /// All sequences from `first` on have one row.
  void run_decode(DeviceMatrix& out, int first, int surplus = 3) const {
    const int sequences = static_cast<int>(context.size()) - first;
    const int room = decode_items_max(sequences, layout.kv_heads, kMultiprocessors) + surplus;
    std::vector<DecodeItem> items(static_cast<std::size_t>(room));
    std::vector<std::int32_t> slots(static_cast<std::size_t>(sequences + 1));
    DecodeAttentionArgs a;
    a.attention = args(out);
    a.first = first;
    a.sequences = sequences;
    const std::int32_t count = plan_decode(std::span(context).subspan(static_cast<std::size_t>(first)), first,
                                           layout.kv_heads, kMultiprocessors, items.data(), slots.data());
    REQUIRE(count <= room - surplus);
    a.items = items.data();
    a.item_count = &count;
    a.slot_begin = slots.data();
    a.items_max = room;
    const DeviceBytes partial(decode_partial_bytes(room, query_heads, layout.head_dim));
    a.partial = partial.data();
    decode_attention(a, nullptr);
  }

  double decode_error() const {
    DeviceMatrix out = output();
    run_decode(out, 0);
    return out.excess(expected, 0, 0);
  }
};

const std::vector<Length> kMixed = {{0, 37}, {65, 1}, {130, 20}, {0, 1}, {15, 1}, {16, 1}, {3, 70}};
const std::vector<Length> kDecodes = {{0, 1},  {14, 1},  {15, 1},  {16, 1},
                                      {63, 1}, {200, 1}, {511, 1}, {700, 1}};

}  // namespace

TEST_CASE("plain attention of mixed batches is that of double precision for every storage") {
  in_all_orders([] {
    CHECK(Batch(KvType::f32, 48, 2, 3, 5, ElementType::f32, kMixed, 1).simple_error() < 2e-6);
    CHECK(Batch(KvType::f32, 256, 1, 1, 16, ElementType::f32, {{9, 4}}, 2).simple_error() < 2e-6);
    CHECK(Batch(KvType::bf16, 64, 2, 4, 16, ElementType::bf16, kMixed, 3).simple_error() < 1e-2);
    CHECK(Batch(KvType::int8, 64, 1, 5, 32, ElementType::bf16, kMixed, 4).simple_error() < 1e-2);
    CHECK(Batch(KvType::fp8, 128, 1, 2, 7, ElementType::f32, kMixed, 5).simple_error() < 1e-5);
  });
}

TEST_CASE("decode attention by tensor cores is that of double precision for every group, dim and storage") {
  in_all_orders([] {
    for (const KvType type : {KvType::bf16, KvType::int8, KvType::fp8})
      for (const int dim : {64, 128}) {
        const int group = GENERATE_COPY(1, 4, 8, 11, 16);
        CAPTURE(static_cast<int>(type), dim, group);
        const int kv_heads = group == 4 ? 2 : 1;
        CHECK(Batch(type, dim, kv_heads, group, 16, ElementType::bf16, kDecodes, 6).decode_error() < 1.2e-2);
      }
  });
  CHECK(Batch(KvType::bf16, 128, 2, 4, 48, ElementType::bf16, kDecodes, 7).decode_error() < 1.2e-2);
  CHECK(Batch(KvType::int8, 64, 1, 2, 32, ElementType::bf16, kDecodes, 7).decode_error() < 1.2e-2);
}

TEST_CASE("prefill attention by tensor cores is that of double precision for chunks beside decodes") {
  in_all_orders([] {
    for (const KvType type : {KvType::bf16, KvType::int8, KvType::fp8})
      for (const int dim : {64, 128}) {
        CAPTURE(static_cast<int>(type), dim);
        CHECK(Batch(type, dim, 1, 3, 16, ElementType::bf16, kMixed, 8).prefill_error() < 1.5e-2);
      }
  });
  for (const int group : {1, 2, 7, 16})
    CHECK(Batch(KvType::bf16, 64, 1, group, 32, ElementType::bf16, kMixed, 9).prefill_error() < 1.5e-2);
  CHECK(Batch(KvType::bf16, 128, 2, 4, 16, ElementType::bf16, {{0, 130}, {190, 64}}, 10).prefill_error() <
        1.5e-2);
}

TEST_CASE("chunks and decodes of one batch may go to a kernel each") {
  const Batch batch(KvType::bf16, 64, 1, 4, 16, ElementType::bf16,
                    {{20, 30}, {0, 9}, {99, 1}, {0, 1}, {40, 1}}, 11);
  DeviceMatrix out = batch.output();
  batch.run_prefill(out, 2);
  batch.run_decode(out, 2);
  CHECK(out.excess(batch.expected, 0, 0) < 1.2e-2);
}

TEST_CASE("where pages lie changes no bit of attention") {
  for (const KvType type : {KvType::bf16, KvType::int8}) {
    const Batch one(type, 64, 1, 4, 16, ElementType::bf16, kDecodes, 12, 11);
    const Batch two(type, 64, 1, 4, 16, ElementType::bf16, kDecodes, 12, 17);
    REQUIRE(one.pages != two.pages);
    DeviceMatrix first = one.output(), second = two.output();
    one.run_decode(first, 0);
    two.run_decode(second, 0);
    CHECK(std::memcmp(first.data(), second.data(), first.bytes.size()) == 0);
    one.run_prefill(first, static_cast<int>(one.context.size()));
    two.run_prefill(second, static_cast<int>(two.context.size()));
    CHECK(std::memcmp(first.data(), second.data(), first.bytes.size()) == 0);
  }
}

TEST_CASE("sequences without context give zeros, not NaN") {
  Batch batch(KvType::bf16, 64, 1, 4, 16, ElementType::bf16, {{20, 1}, {0, 1}}, 13);
  // A dead row: it has a place in the batch, and nothing to look at.
  batch.context[1] = 0;
  const auto is_zero = [&](const DeviceMatrix& out) {
    for (int c = 0; c < out.columns; ++c)
      if (out.at(1, c) != 0.0F) return false;
    return true;
  };
  DeviceMatrix out = batch.output();
  batch.run_decode(out, 0);
  CHECK(is_zero(out));
  attention_simple(batch.args(out), nullptr);
  CHECK(is_zero(out));
}

TEST_CASE("the comparison with double precision notices faults of a plan, a mask and a page table") {
  Batch batch(KvType::bf16, 64, 1, 4, 16, ElementType::bf16, {{30, 1}, {33, 1}}, 14);
  CHECK(batch.decode_error() < 1.2e-2);
  SECTION("a page of another sequence") { std::swap(batch.pages[1], batch.pages[3]); }
  SECTION("one key too few") { batch.context[0] -= 1; }
  SECTION("one key too many, which nobody wrote") { batch.context[1] += 1; }
  CHECK_FALSE(batch.decode_error() < 2e-2);
  CHECK_FALSE(batch.prefill_error() < 2e-2);
  CHECK_FALSE(batch.simple_error() < 2e-2);
}

TEST_CASE("decode plans cover every tile once, within the promised number of items") {
  Numbers draw{15};
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int32_t> contexts;
    for (int i = draw.whole(1, 40); i > 0; --i) contexts.push_back(draw.whole(0, round % 2 == 0 ? 5000 : 60));
    const int kv_heads = draw.whole(1, 8), multiprocessors = draw.whole(1, 140);
    const int sequences = static_cast<int>(contexts.size());
    std::vector<DecodeItem> items(
        static_cast<std::size_t>(decode_items_max(sequences, kv_heads, multiprocessors)) + 100);
    std::vector<std::int32_t> slots(contexts.size() + 1);
    const int count = plan_decode(contexts, 3, kv_heads, multiprocessors, items.data(), slots.data());
    REQUIRE(count <= decode_items_max(sequences, kv_heads, multiprocessors));
    REQUIRE(slots.back() == count);
    for (int s = 0; s < sequences; ++s) {
      int next = 0;
      for (int i = slots[static_cast<std::size_t>(s)]; i < slots[static_cast<std::size_t>(s) + 1]; ++i) {
        const DecodeItem& item = items[static_cast<std::size_t>(i)];
        CHECK((item.sequence == s + 3 && item.tile_begin == next && item.tiles > 0 && item.slot == i));
        next += item.tiles;
      }
      CHECK(next == (contexts[static_cast<std::size_t>(s)] + kDecodeTile - 1) / kDecodeTile);
    }
  }
}

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/catch.hpp"
#include "tests/kernels/kernel_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cpu;
using namespace foretoken::test;
using reference::Matrix;

namespace {

/// A ragged batch over a paged pool of which every unused element is NaN.
struct Case {
  KvLayout layout;
  int group = 1;
  std::vector<int> contexts, news;
  std::vector<Matrix> q, k, v;
};

Case draw_case(Numbers& draw) {
  Case c;
  const int blocks[] = {16, 4, 32, 1, 48};
  const int dims[] = {64, 128, 16, 80};
  c.layout.type = draw.whole(0, 2) == 0 ? ElementType::f32 : ElementType::bf16;
  c.layout.layers = 2;
  c.layout.kv_heads = draw.whole(1, 3);
  c.layout.block_tokens = blocks[draw.whole(0, 4)];
  c.layout.head_dim = dims[draw.whole(0, 3)];
  c.group = draw.whole(1, 5);
  for (int s = 0; s < draw.whole(1, 5); ++s) {
    c.contexts.push_back(draw.whole(1, 150));
    c.news.push_back(draw.whole(0, 1) == 0 ? 1 : draw.whole(1, c.contexts.back()));
    const int dim = c.layout.head_dim;
    c.q.push_back(draw.matrix(c.news.back(), c.layout.kv_heads * c.group * dim, c.layout.type));
    c.k.push_back(draw.matrix(c.contexts.back(), c.layout.kv_heads * dim, c.layout.type));
    c.v.push_back(draw.matrix(c.contexts.back(), c.layout.kv_heads * dim, c.layout.type));
  }
  return c;
}

/// Computes the case with its pages in an order given by `rotation`; `fault` drops the last page of the first
/// sequence.
Stored attend(const Case& c, Isa isa, int threads, int rotation, bool fault = false) {
  const KvLayout& layout = c.layout;
  const int dim = layout.head_dim;
  std::vector<std::int32_t> row_begin{0}, page_begin{0}, pages,
      contexts(c.contexts.begin(), c.contexts.end());
  for (std::size_t s = 0; s < c.news.size(); ++s) {
    row_begin.push_back(row_begin.back() + c.news[s]);
    page_begin.push_back(page_begin.back() + (c.contexts[s] + layout.block_tokens - 1) / layout.block_tokens);
  }
  const int count = page_begin.back();
  for (int i = 0; i < count; ++i) pages.push_back((i * 7 + rotation) % (7 * count + 3) % (count + 3));
  std::sort(pages.begin(), pages.end());
  pages.clear();
  for (int i = 0; i < count; ++i) pages.push_back((i + rotation) % (count + 2));
  if (rotation % 2 == 1) std::reverse(pages.begin(), pages.end());
  Stored pool(layout.type, 1, layout.block_elements() * (count + 2));
  for (std::size_t s = 0; s < c.news.size(); ++s)
    for (int t = 0; t < c.contexts[s]; ++t)
      for (int h = 0; h < layout.kv_heads; ++h)
        for (int d = 0; d < dim; ++d) {
          const std::int64_t block = pages[static_cast<std::size_t>(page_begin[s] + t / layout.block_tokens)];
          const int slot = t % layout.block_tokens;
          pool.set(0,
                   static_cast<int>(page_offset(layout, block, 1, KvPart::key, h) +
                                    kv_offset(layout, KvPart::key, slot, d)),
                   static_cast<float>(c.k[s].at(t, h * dim + d)));
          pool.set(0,
                   static_cast<int>(page_offset(layout, block, 1, KvPart::value, h) +
                                    kv_offset(layout, KvPart::value, slot, d)),
                   static_cast<float>(c.v[s].at(t, h * dim + d)));
        }
  if (fault) pages[static_cast<std::size_t>(page_begin[1] - 1)] = pages[0];
  const int heads = layout.kv_heads * c.group;
  Stored q(activation_type(isa, layout.type), row_begin.back(), heads * dim + 8);
  for (std::size_t s = 0; s < c.news.size(); ++s)
    for (int r = 0; r < c.news[s]; ++r)
      for (int i = 0; i < heads * dim; ++i) q.set(row_begin[s] + r, i, static_cast<float>(c.q[s].at(r, i)));
  Stored out(ElementType::f32, row_begin.back(), heads * dim + 4);
  AttentionArgs args;
  args.batch = {static_cast<int>(c.news.size()), row_begin.data(), contexts.data(), page_begin.data(),
                pages.data()};
  args.query_heads = heads;
  args.layout = layout;
  args.layer = 1;
  args.pool = pool.data();
  args.q = q.data();
  args.q_stride = q.stride;
  args.out = out.data();
  args.out_stride = out.stride;
  args.scale = 0.3F;
  AttentionPlan plan;
  plan_attention(args.batch, heads, layout.kv_heads, threads, plan);
  on_team(threads, [&](Share share) { kernels(isa).attention(args, plan, share); });
  return out;
}

Matrix expected(const Case& c) {
  int rows = 0;
  for (const int n : c.news) rows += n;
  Matrix want(rows, c.q[0].columns);
  int row = 0;
  for (std::size_t s = 0; s < c.news.size(); ++s) {
    const Matrix part = reference::attention(c.q[s], c.k[s], c.v[s], c.layout.head_dim, 0.3F);
    for (int r = 0; r < part.rows; ++r, ++row)
      for (int i = 0; i < part.columns; ++i) want.at(row, i) = part.at(r, i);
  }
  return want;
}

double tolerance(const Case& c, Isa isa) {
  return activation_type(isa, c.layout.type) == ElementType::bf16 ? 6e-3 : 2e-5;
}

}  // namespace

TEST_CASE("paged attention of every ISA agrees with the double twin on ragged batches", "[property]") {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    Numbers draw{seed};
    const Case c = draw_case(draw);
    const Matrix want = expected(c);
    for (const Isa isa : available_isas()) {
      INFO(isa_name(isa) << " seed " << seed << " block " << c.layout.block_tokens << " dim "
                         << c.layout.head_dim);
      CHECK(excess(attend(c, isa, 1 + static_cast<int>(seed % 3), 0), want, tolerance(c, isa), 0) <= 0);
    }
  }
}

TEST_CASE("permuted pages and other teams change no bit", "[property]") {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    Numbers draw{seed};
    const Case c = draw_case(draw);
    for (const Isa isa : available_isas()) {
      const Stored a = attend(c, isa, 1, 0), b = attend(c, isa, 3, 3);
      INFO(isa_name(isa) << " seed " << seed);
      CHECK(std::memcmp(a.floats.data(), b.floats.data(), a.floats.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("each row alone, as a decode, gives the bits it has inside a prefill of any chunk", "[property]") {
  for (std::uint64_t seed = 200; seed < 206; ++seed) {
    Numbers draw{seed};
    Case whole = draw_case(draw);
    whole.contexts.resize(1), whole.news.resize(1);
    whole.q.resize(1), whole.k.resize(1), whole.v.resize(1);
    whole.news[0] = whole.contexts[0];
    whole.q[0] = draw.matrix(whole.news[0], whole.q[0].columns, whole.layout.type);
    for (const Isa isa : available_isas()) {
      const Stored all = attend(whole, isa, 2, 0);
      bool equal = true;
      for (int t = 0; t < whole.contexts[0]; t += 9) {
        Case one = whole;
        one.contexts[0] = t + 1, one.news[0] = 1;
        one.q[0] = Matrix(1, whole.q[0].columns);
        one.k[0] = Matrix(t + 1, whole.k[0].columns), one.v[0] = one.k[0];
        std::copy_n(whole.q[0].values.begin() + std::ptrdiff_t(t) * one.q[0].columns, one.q[0].columns,
                    one.q[0].values.begin());
        std::copy_n(whole.k[0].values.begin(), one.k[0].values.size(), one.k[0].values.begin());
        std::copy_n(whole.v[0].values.begin(), one.v[0].values.size(), one.v[0].values.begin());
        const Stored row = attend(one, isa, 1, 1);
        equal &= std::memcmp(&row.floats[0], &all.floats[all.index(t, 0)],
                             std::size_t(one.q[0].columns) * sizeof(float)) == 0;
      }
      INFO(isa_name(isa) << " seed " << seed);
      CHECK(equal);
    }
  }
}

TEST_CASE("seeded fault: a page table that drops a page is noticed", "[property]") {
  Numbers draw{42};
  Case c = draw_case(draw);
  while (c.contexts[0] <= c.layout.block_tokens) c = draw_case(draw);
  CHECK(!(excess(attend(c, active_isa(), 1, 0, true), expected(c), 6e-3, 0) <= 0));
}

TEST_CASE("RoPE turns queries and writes keys and values where the layout says", "[property]") {
  for (const Isa isa : available_isas())
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      Numbers draw{seed};
      const Case c = draw_case(draw);
      const KvLayout& layout = c.layout;
      const int dim = layout.head_dim, heads = layout.kv_heads * c.group, rows = draw.whole(1, 9);
      const Matrix qkv = draw.matrix(rows, (heads + 2 * layout.kv_heads) * dim, ElementType::f32);
      Stored in(ElementType::f32, qkv, qkv.columns + 4);
      std::vector<float> cosine(std::size_t(64 * dim / 2)), sine(cosine.size());
      fill_rope_table(64, dim, 10000.0, cosine.data(), sine.data());
      std::vector<std::int32_t> positions;
      std::vector<std::int64_t> slots;
      for (int r = 0; r < rows; ++r)
        positions.push_back(draw.whole(0, 63)), slots.push_back(r == 2 ? -1 : r + 3);
      const int blocks = 12 / layout.block_tokens + 1;
      Stored pool(layout.type, 1, layout.block_elements() * blocks),
          q(activation_type(isa, layout.type), rows, heads * dim);
      RopeArgs args{rows,
                    heads,
                    layout,
                    1,
                    in.floats.data(),
                    in.stride,
                    positions.data(),
                    slots.data(),
                    cosine.data(),
                    sine.data(),
                    pool.data(),
                    q.data(),
                    q.stride,
                    q.type};
      on_team(2, [&](Share share) { kernels(isa).rope_and_write_kv(args, share); });
      const Matrix turned =
          reference::rope(qkv, std::vector<int>(positions.begin(), positions.end()), dim, 10000.0);
      Matrix want(rows, heads * dim);
      for (int r = 0; r < rows; ++r)
        for (int i = 0; i < want.columns; ++i) want.at(r, i) = turned.at(r, i);
      INFO(isa_name(isa) << " seed " << seed);
      CHECK(excess(q, want, 1e-4, 5e-3) <= 0);
      double worst = 0;
      for (int r = 0; r < rows; ++r)
        for (int i = 0; r != 2 && i < layout.kv_heads * dim; ++i) {
          const std::int64_t slot = slots[std::size_t(r)];
          const auto at = [&](KvPart part) {
            return pool.at(
                0, static_cast<int>(
                       page_offset(layout, slot / layout.block_tokens, 1, part, i / dim) +
                       kv_offset(layout, part, static_cast<int>(slot % layout.block_tokens), i % dim)));
          };
          const double key = std::abs(at(KvPart::key) - turned.at(r, heads * dim + i));
          const double value = std::abs(at(KvPart::value) - qkv.at(r, (heads + layout.kv_heads) * dim + i));
          worst = std::isnan(key + value) ? 1e9 : std::max({worst, key, value});
        }
      CHECK(worst < 8e-3);
    }
}

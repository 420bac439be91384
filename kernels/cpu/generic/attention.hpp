#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/generic/accumulate.hpp"
#include "kernels/cpu/generic/math.hpp"
#include "kernels/cpu/generic/rope.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken::cpu {
namespace {

/// Keys scored together: four tiles of 16, one vector each.
inline constexpr int kScoreKeys = 64;
inline constexpr int kScoreTiles = kScoreKeys / kTileSlots;
/// Query rows (tokens times heads of the group) that share the keys of a pass.
inline constexpr int kQueryRows = 64;

/// Everything that the passes over one item's keys share; scratch lives on the stack of the member.
template <class O, class S>
struct AttentionWork {
  using Activation = typename O::template Activation<S>;
  const AttentionArgs* args;
  const std::int32_t* pages;
  int kv_head;
  int rows;
  /// Keys that row r sees: first_limit + r / group.
  int first_limit;
  int group;
  int keys_total;
  alignas(64) Activation queries[kQueryRows * kHeadDimMax];
  alignas(64) float scores[kQueryRows * kScoreKeys];
  alignas(64) Activation weights[kQueryRows * kScoreKeys];
  alignas(64) float sums[kQueryRows * kHeadDimMax];
  alignas(64) float row_sums[kQueryRows * 16];
  float row_largest[kQueryRows];
  float row_factor[kQueryRows];
  /// The 16-key tiles of the pass, in pages or in `packed`.
  const std::byte* key_tiles[kScoreTiles];
  const std::byte* value_tiles[kScoreTiles];
  alignas(64) S packed[2 * kScoreKeys * kHeadDimMax];
};

/// Copies one tile out of pages that are not tiled, into the order of tiled ones; slots beyond the context
/// become zero.
template <class O, class S>
inline void pack_tile(AttentionWork<O, S>& work, int tile, int first_key) {
  const KvLayout& layout = work.args->layout;
  const S* pool = static_cast<const S*>(work.args->pool);
  KvLayout tiled = layout;
  tiled.block_tokens = kTileSlots;
  const int dim = layout.head_dim;
  S* keys = work.packed + 2 * tile * kTileSlots * dim;
  S* values = keys + kTileSlots * dim;
  std::memset(static_cast<void*>(keys), 0, sizeof(S) * 2 * static_cast<std::size_t>(kTileSlots * dim));
  const int count = std::min(kTileSlots, work.keys_total - first_key);
  for (int i = 0; i < count; ++i) {
    const int key = first_key + i;
    const std::int32_t block = work.pages[key / layout.block_tokens];
    const std::int64_t at = std::int64_t{key % layout.block_tokens} * dim;
    const S* key_row = pool + page_offset(layout, block, work.args->layer, KvPart::key, work.kv_head) + at;
    const S* value_row =
        pool + page_offset(layout, block, work.args->layer, KvPart::value, work.kv_head) + at;
    for (int d = 0; d < dim; ++d) {
      keys[kv_offset(tiled, KvPart::key, i, d)] = key_row[d];
      values[kv_offset(tiled, KvPart::value, i, d)] = value_row[d];
    }
  }
  work.key_tiles[tile] = reinterpret_cast<const std::byte*>(keys);
  work.value_tiles[tile] = reinterpret_cast<const std::byte*>(values);
}

/// Finds (or packs) the tiles of the pass that begins at `first_key`; returns how many there are.
template <class O, class S>
inline int find_tiles(AttentionWork<O, S>& work, int first_key) {
  const KvLayout& layout = work.args->layout;
  const S* pool = static_cast<const S*>(work.args->pool);
  const int keys = std::min(kScoreKeys, work.keys_total - first_key);
  const int tiles = (keys + kTileSlots - 1) / kTileSlots;
  for (int tile = 0; tile < tiles; ++tile) {
    const int key = first_key + tile * kTileSlots;
    if (!layout.is_tiled()) {
      pack_tile(work, tile, key);
      continue;
    }
    const std::int32_t block = work.pages[key / layout.block_tokens];
    const std::int64_t inside = std::int64_t{key % layout.block_tokens} * layout.head_dim;
    const S* page = pool + page_offset(layout, block, work.args->layer, KvPart::key, work.kv_head) + inside;
    work.key_tiles[tile] = reinterpret_cast<const std::byte*>(page);
    work.value_tiles[tile] =
        reinterpret_cast<const std::byte*>(page + layout.kv_heads * layout.page_elements());
  }
  return tiles;
}

/// scores[row .. row + R][tile .. tile + P] = q k.
template <class O, class S, int R, int P>
inline void score_tile(AttentionWork<O, S>& work, int row, int tile) {
  const int dim = work.args->layout.head_dim;
  typename O::F acc[R][P];
  clear<O>(acc);
  const std::byte* w[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) w[p] = work.key_tiles[tile + p];
  accumulate<O, S>(acc, work.queries + row * dim, dim, w, kPanelStepBytes, dim / kStepDepth<S>);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
      O::store(work.scores + (row + r) * kScoreKeys + (tile + p) * kTileSlots, acc[r][p]);
}

template <class O, class S, int R>
inline void score_rows(AttentionWork<O, S>& work, int row, int tiles) {
  if (tiles == kScoreTiles) {
    score_tile<O, S, R, kScoreTiles>(work, row, 0);
    return;
  }
  int tile = 0;
  for (; tile + 2 <= tiles; tile += 2) score_tile<O, S, R, 2>(work, row, tile);
  if (tile < tiles) score_tile<O, S, R, 1>(work, row, tile);
}

/// Turns the scores of one row into weights 2^(score - largest so far), and the factor by which earlier sums
/// shrink.
template <class O, class S>
inline void weigh_row(AttentionWork<O, S>& work, int row, int first_key, int tiles) {
  const float scale = work.args->scale * kLog2E;
  const int visible = work.first_limit + row / work.group - first_key;
  const float* scores = work.scores + row * kScoreKeys;
  typename O::F values[kScoreTiles];
  auto largest = O::broadcast(-INFINITY);
  for (int t = 0; t < tiles; ++t) {
    values[t] = O::mul(O::load(scores + t * kTileSlots), O::broadcast(scale));
    values[t] = O::keep_first(values[t], visible - t * kTileSlots, O::broadcast(-INFINITY));
    largest = O::max(largest, values[t]);
  }
  const float before = work.row_largest[row];
  const float now = std::max(before, O::largest(largest));
  work.row_largest[row] = now;
  const auto factor = exp2<O>(O::broadcast(before - now));
  alignas(64) float lanes[16];
  O::store(lanes, factor);
  work.row_factor[row] = lanes[0];
  auto sum = O::mul(O::load(work.row_sums + row * 16), factor);
  for (int t = 0; t < tiles; ++t) {
    auto weight = exp2<O>(O::sub(values[t], O::broadcast(now)));
    weight = O::keep_first(weight, visible - t * kTileSlots, O::zero());
    sum = O::add(sum, weight);
    O::store(work.weights + row * kScoreKeys + t * kTileSlots, weight);
  }
  O::store(work.row_sums + row * 16, sum);
}

/// sums[row .. row + R][panel .. panel + P] = factor * sums + weights * values, over `keys` keys.
template <class O, class S, int R, int P>
inline void add_values(AttentionWork<O, S>& work, int row, int panel, int keys) {
  using Activation = typename O::template Activation<S>;
  const int dim = work.args->layout.head_dim;
  const std::int64_t step_bytes = std::int64_t{dim} * 4;
  constexpr int kSteps = kTileSlots / kStepDepth<S>;
  typename O::F acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const auto factor = O::broadcast(work.row_factor[row + r]);
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p)
      acc[r][p] = O::mul(O::load(work.sums + (row + r) * dim + (panel + p) * 16), factor);
  }
  const Activation* x = work.weights + row * kScoreKeys;
  for (int tile = 0; tile * kTileSlots < keys; ++tile) {
    const std::byte* w[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) w[p] = work.value_tiles[tile] + (panel + p) * kPanelStepBytes;
    const int here = std::min(kTileSlots, keys - tile * kTileSlots);
    const int steps = here / kStepDepth<S>;
    const Activation* tile_x = x + tile * kTileSlots;
    if (steps == kSteps) {
      accumulate<O, S>(acc, tile_x, kScoreKeys, w, step_bytes, kSteps);
      continue;
    }
    accumulate<O, S>(acc, tile_x, kScoreKeys, w, step_bytes, steps);
    if (kStepDepth<S> == 2 && here % 2 != 0) {
      // The partner of the last key is an unused slot, which may hold anything: a copy with zeros stands in
      // for it.
      alignas(64) std::byte clean[P * kPanelStepBytes];
      const std::byte* clean_w[P];
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) {
        clean_w[p] = clean + p * kPanelStepBytes;
        Bf16 pairs[32];
        std::memcpy(pairs, w[p] + steps * step_bytes, sizeof(pairs));
        for (int i = 1; i < 32; i += 2) pairs[i] = Bf16{0};
        std::memcpy(clean + p * kPanelStepBytes, pairs, sizeof(pairs));
      }
      accumulate<O, S>(acc, tile_x + steps * 2, kScoreKeys, clean_w, 0, 1);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) O::store(work.sums + (row + r) * dim + (panel + p) * 16, acc[r][p]);
}

template <class O, class S, int R>
inline void add_rows(AttentionWork<O, S>& work, int row, int keys) {
  const int panels = work.args->layout.head_dim / 16;
  int panel = 0;
  for (; panel + 4 <= panels; panel += 4) add_values<O, S, R, 4>(work, row, panel, keys);
  for (; panel < panels; ++panel) add_values<O, S, R, 1>(work, row, panel, keys);
}

/// One pass: up to 64 keys against all rows that see at least the first of them.
template <class O, class S>
inline void attend_pass(AttentionWork<O, S>& work, int first_key) {
  constexpr int kRows = O::kAttentionRows;
  const int tiles = find_tiles(work, first_key);
  const int keys = std::min(kScoreKeys, work.keys_total - first_key);
  // Rows come in order of their limits, so those that see nothing here are the first ones.
  int begin = std::max(0, (first_key - work.first_limit + 1) * work.group);
  begin = std::min(begin, work.rows);
  int row = begin;
  for (; row + kRows <= work.rows; row += kRows) score_rows<O, S, kRows>(work, row, tiles);
  if constexpr (kRows > 4)
    for (; row + 4 <= work.rows; row += 4) score_rows<O, S, 4>(work, row, tiles);
  for (; row < work.rows; ++row) score_rows<O, S, 1>(work, row, tiles);
  for (row = begin; row < work.rows; ++row) weigh_row(work, row, first_key, tiles);
  row = begin;
  for (; row + kRows <= work.rows; row += kRows) add_rows<O, S, kRows>(work, row, keys);
  if constexpr (kRows > 4)
    for (; row + 4 <= work.rows; row += 4) add_rows<O, S, 4>(work, row, keys);
  for (; row < work.rows; ++row) add_rows<O, S, 1>(work, row, keys);
}

template <class O, class S>
inline void store_output(const AttentionWork<O, S>& work, std::int64_t first_row) {
  const AttentionArgs& args = *work.args;
  const int dim = args.layout.head_dim;
  for (int row = 0; row < work.rows; ++row) {
    const auto inverse = O::broadcast(1.0F / O::sum(O::load(work.row_sums + row * 16)));
    const std::int64_t head = std::int64_t{work.kv_head} * work.group + row % work.group;
    const std::int64_t out = (first_row + row / work.group) * args.out_stride + head * dim;
    for (int i = 0; i < dim; i += 16) {
      const auto value = O::mul(O::load(work.sums + row * dim + i), inverse);
      if (args.out_type == ElementType::f32)
        O::store(static_cast<float*>(args.out) + out + i, value);
      else
        O::store(static_cast<Bf16*>(args.out) + out + i, value);
    }
  }
}

/// Tokens [row, row + tokens) of the item's sequence, all heads of the group.
template <class O, class S>
inline void attend(AttentionWork<O, S>& work, const AttentionItem& item, int row, int tokens) {
  using Activation = typename O::template Activation<S>;
  const AttentionArgs& args = *work.args;
  const AttentionBatch& batch = args.batch;
  const int dim = args.layout.head_dim;
  const int sequence_rows = batch.row_begin[item.sequence + 1] - batch.row_begin[item.sequence];
  const std::int64_t first_row = batch.row_begin[item.sequence] + row;
  work.pages = batch.pages + batch.page_begin[item.sequence];
  work.kv_head = item.kv_head;
  work.rows = tokens * work.group;
  work.first_limit = batch.context[item.sequence] - sequence_rows + row + 1;
  work.keys_total = work.first_limit + tokens - 1;
  for (int r = 0; r < work.rows; ++r) {
    const std::int64_t head = std::int64_t{item.kv_head} * work.group + r % work.group;
    const Activation* q =
        static_cast<const Activation*>(args.q) + (first_row + r / work.group) * args.q_stride;
    std::memcpy(static_cast<void*>(work.queries + r * dim), q + head * dim,
                sizeof(Activation) * static_cast<std::size_t>(dim));
    work.row_largest[r] = -INFINITY;
  }
  std::fill(work.sums, work.sums + work.rows * dim, 0.0F);
  std::fill(work.row_sums, work.row_sums + work.rows * 16, 0.0F);
  for (int key = 0; key < work.keys_total; key += kScoreKeys) attend_pass(work, key);
  store_output(work, first_row);
}

template <class O, class S>
void attention_of(const AttentionArgs& args, const AttentionPlan& plan, Share share) {
  AttentionWork<O, S> work;
  work.args = &args;
  work.group = args.query_heads / args.layout.kv_heads;
  const int tokens_max = kQueryRows / work.group;
  const auto member = static_cast<std::size_t>(share.index);
  for (std::int32_t i = plan.item_begin[member]; i < plan.item_begin[member + 1]; ++i) {
    const AttentionItem& item = plan.items[static_cast<std::size_t>(i)];
    for (int row = 0; row < item.rows; row += tokens_max)
      attend(work, item, item.row + row, std::min(tokens_max, item.rows - row));
  }
}

template <class O>
void attention(const AttentionArgs& args, const AttentionPlan& plan, Share share) {
  if (args.layout.type == ElementType::f32)
    attention_of<O, float>(args, plan, share);
  else
    attention_of<O, Bf16>(args, plan, share);
}

}  // namespace
}  // namespace foretoken::cpu

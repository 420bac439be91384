#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/cpu/generic/math.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken::cpu {
namespace {

inline constexpr int kHeadDimMax = 256;

/// out = x turned by the angles of one position: dims i and i + half are one plane.
template <class O, class T>
inline void rotate(const float* x, const float* cosine, const float* sine, int half, T* out) {
  for (int i = 0; i < half; i += 16) {
    const int n = std::min(16, half - i);
    const auto a = O::load(x + i, n), b = O::load(x + half + i, n);
    const auto c = O::load(cosine + i, n), s = O::load(sine + i, n);
    const auto minus = O::mul(O::broadcast(-1.0F), s);
    store_some<O>(out + i, O::fma(a, c, O::mul(b, minus)), n);
    store_some<O>(out + half + i, O::fma(b, c, O::mul(a, s)), n);
  }
}

/// Puts the keys and values of one token and head into the pages of its block.
template <class S>
inline void write_kv(const KvLayout& layout, S* pool, int layer, int head, std::int64_t slot_in_pool,
                     const S* key, const S* value) {
  const std::int64_t block = slot_in_pool / layout.block_tokens;
  const int slot = static_cast<int>(slot_in_pool % layout.block_tokens);
  S* keys = pool + page_offset(layout, block, layer, KvPart::key, head);
  S* values = pool + page_offset(layout, block, layer, KvPart::value, head);
  const int dim = layout.head_dim;
  if (!layout.is_tiled()) {
    std::copy(key, key + dim, keys + kv_offset(layout, KvPart::key, slot, 0));
    std::copy(value, value + dim, values + kv_offset(layout, KvPart::value, slot, 0));
  } else if constexpr (sizeof(S) == 2) {
    S* first = keys + kv_offset(layout, KvPart::key, slot, 0);
    for (int i = 0; i < dim; i += 2) std::memcpy(first + i * kTileSlots, key + i, 2 * sizeof(S));
    first = values + kv_offset(layout, KvPart::value, slot, 0);
    for (int i = 0; i < dim; ++i) first[2 * i] = value[i];
  } else {
    S* first = keys + kv_offset(layout, KvPart::key, slot, 0);
    for (int i = 0; i < dim; ++i) first[i * kTileSlots] = key[i];
    std::copy(value, value + dim, values + kv_offset(layout, KvPart::value, slot, 0));
  }
}

template <class O, class S>
inline void rope_kv_head(const RopeArgs& args, std::int64_t row, int head) {
  if (args.slots[row] < 0) return;
  const int dim = args.layout.head_dim, half = dim / 2;
  const float* heads = args.qkv + row * args.qkv_stride + std::int64_t{args.query_heads} * dim;
  const std::int64_t angle = std::int64_t{args.positions[row]} * half;
  alignas(64) S key[kHeadDimMax], value[kHeadDimMax];
  rotate<O>(heads + std::int64_t{head} * dim, args.cosine + angle, args.sine + angle, half, key);
  const float* source = heads + std::int64_t{args.layout.kv_heads + head} * dim;
  for (int i = 0; i < dim; i += 16) O::store(value + i, O::load(source + i));
  write_kv(args.layout, static_cast<S*>(args.pool), args.layer, head, args.slots[row], key, value);
}

template <class O>
inline void rope_query_head(const RopeArgs& args, std::int64_t row, int head) {
  const int dim = args.layout.head_dim, half = dim / 2;
  const float* x = args.qkv + row * args.qkv_stride + std::int64_t{head} * dim;
  const std::int64_t angle = std::int64_t{args.positions[row]} * half;
  const std::int64_t out = row * args.q_stride + std::int64_t{head} * dim;
  if (args.q_type == ElementType::f32)
    rotate<O>(x, args.cosine + angle, args.sine + angle, half, static_cast<float*>(args.q_out) + out);
  else
    rotate<O>(x, args.cosine + angle, args.sine + angle, half, static_cast<Bf16*>(args.q_out) + out);
}

/// Rows times heads are dealt out, so that a single row is shared as well.
template <class O>
void rope_and_write_kv(const RopeArgs& args, Share share) {
  const int heads = args.query_heads + args.layout.kv_heads;
  const Range mine = split(std::int64_t{args.rows} * heads, share);
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    const std::int64_t row = i / heads;
    const int head = static_cast<int>(i % heads);
    if (head < args.query_heads)
      rope_query_head<O>(args, row, head);
    else if (args.layout.type == ElementType::f32)
      rope_kv_head<O, float>(args, row, head - args.query_heads);
    else
      rope_kv_head<O, Bf16>(args, row, head - args.query_heads);
  }
}

}  // namespace
}  // namespace foretoken::cpu

#include "kernels/cuda/decode_attention.hpp"

#include "kernels/cuda/attention_device.hpp"

namespace foretoken::cuda {
namespace {

using detail::kLowest;
using detail::swizzled;

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kStages = 3;
constexpr unsigned kAll = 0xffffffffU;

/// One stage of a warp's ring: a tile of keys, one of values, and the scales of both where they have some.
template <KvType Type, int Dim>
struct Stage {
  static constexpr int kRowBytes = Dim * kv_element_bytes(Type);
  static constexpr int kTileBytes = kDecodeTile * kRowBytes;
  static constexpr int kScaleBytes = has_scales(Type) ? kDecodeTile * 4 : 0;
  static constexpr int kBytes = 2 * (kTileBytes + kScaleBytes);
};

/// Starts the copies of one tile into `stage`; all lanes take part.
template <KvType Type, int Dim>
__device__ __forceinline__ void fetch_tile(const AttentionArgs& args, int kv_head, std::int32_t block,
                                           int tile, unsigned char* stage) {
  using S = Stage<Type, Dim>;
  constexpr int kChunks = S::kRowBytes / 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto* pool = static_cast<const unsigned char*>(args.pool);
  const int slot = tile * kDecodeTile % args.layout.block_tokens;
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const auto kind = part == 0 ? KvPart::key : KvPart::value;
    const unsigned char* from =
        pool + page_offset_bytes(args.layout, block, args.layer, kind, kv_head) + slot * S::kRowBytes;
    unsigned char* to = stage + part * S::kTileBytes;
#pragma unroll
    for (int i = 0; i < kDecodeTile * kChunks / 32; ++i) {
      const int e = i * 32 + lane;
      ft::cp_async16(to + swizzled<S::kRowBytes>(e / kChunks, e % kChunks), from + e * 16);
    }
    if constexpr (has_scales(Type)) {
      if (lane >= 4) continue;
      const unsigned char* scales =
          pool + scale_offset_bytes(args.layout, block, args.layer, kind, kv_head) + slot * 4;
      ft::cp_async16(stage + 2 * S::kTileBytes + part * S::kScaleBytes + lane * 16, scales + lane * 16);
    }
  }
}

/// A warp's share of the softmax: rows lane / 4 and, with two of them, lane / 4 + 8 of the group's query
/// heads.
template <int Dim>
struct Sums {
  float out[Dim / 8][4] = {};
  float largest[2] = {kLowest, kLowest};
  float total[2] = {};
};

/// Scores of 16 keys: s[t][0..1] are row lane / 4 against keys 8 t + 2 (lane % 4) and the next, s[t][2..3]
/// eight rows on.
template <KvType Type, int Dim>
__device__ __forceinline__ void score_tile(const unsigned char* keys,
                                           const std::uint32_t (&query)[Dim / 16][4], float (&s)[2][4]) {
  using S = Stage<Type, Dim>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < Dim / 16; ++k) {
    if constexpr (Type == KvType::bf16) {
      std::uint32_t r[4];
      ft::ldmatrix4<false>(r, keys + swizzled<S::kRowBytes>(lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
      const std::uint32_t low[2] = {r[0], r[1]}, high[2] = {r[2], r[3]};
      ft::mma_bf16(s[0], query[k], low);
      ft::mma_bf16(s[1], query[k], high);
    } else {
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const unsigned char* row = keys + swizzled<S::kRowBytes>(8 * t + lane / 4, k) + lane % 4 * 4;
        std::uint32_t b[2];
        detail::widen<Type>(*reinterpret_cast<const std::uint32_t*>(row), b[0], b[1]);
        ft::mma_bf16(s[t], query[k], b);
      }
    }
  }
}

/// out += p V for 16 keys; `p` is the A operand. With bytes, column n of tile j in a run of 32 dims is dim 4
/// n + j.
template <KvType Type, int Dim>
__device__ __forceinline__ void add_values(const unsigned char* values, const std::uint32_t (&p)[4],
                                           float (&out)[Dim / 8][4]) {
  using S = Stage<Type, Dim>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (Type == KvType::bf16) {
#pragma unroll
    for (int j = 0; j < Dim / 16; ++j) {
      std::uint32_t r[4];
      ft::ldmatrix4<true>(r, values + swizzled<S::kRowBytes>(lane / 8 % 2 * 8 + lane % 8, 2 * j + lane / 16));
      const std::uint32_t low[2] = {r[0], r[1]}, high[2] = {r[2], r[3]};
      ft::mma_bf16(out[2 * j], p, low);
      ft::mma_bf16(out[2 * j + 1], p, high);
    }
  } else {
#pragma unroll
    for (int g = 0; g < Dim / 32; ++g) {
      std::uint32_t low[4], high[4];  // of tokens 2q, 2q + 1, 2q + 8, 2q + 9
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = lane % 4 * 2 + i % 2 + i / 2 * 8, n = lane / 4;
        const unsigned char* row = values + swizzled<S::kRowBytes>(token, 2 * g + n / 4) + n % 4 * 4;
        detail::widen<Type>(*reinterpret_cast<const std::uint32_t*>(row), low[i], high[i]);
      }
      const std::uint32_t b0[2] = {detail::firsts(low[0], low[1]), detail::firsts(low[2], low[3])};
      const std::uint32_t b1[2] = {detail::seconds(low[0], low[1]), detail::seconds(low[2], low[3])};
      const std::uint32_t b2[2] = {detail::firsts(high[0], high[1]), detail::firsts(high[2], high[3])};
      const std::uint32_t b3[2] = {detail::seconds(high[0], high[1]), detail::seconds(high[2], high[3])};
      ft::mma_bf16(out[4 * g], p, b0);
      ft::mma_bf16(out[4 * g + 1], p, b1);
      ft::mma_bf16(out[4 * g + 2], p, b2);
      ft::mma_bf16(out[4 * g + 3], p, b3);
    }
  }
}

/// The dim that column `c` (0 or 1) of this lane has in output tile `j`.
template <KvType Type>
__device__ __forceinline__ int dim_of(int j, int c) {
  const int n = static_cast<int>(threadIdx.x) % 4 * 2 + c;
  return has_scales(Type) ? j / 4 * 32 + 4 * n + j % 4 : 8 * j + n;
}

/// Masks, scales and exponentiates the scores of a tile, and brings what was summed so far to the new largest
/// score. Rows is 1 for groups of up to eight query heads, whose upper rows are empty.
template <int Dim, int Rows>
__device__ __forceinline__ void soften(float (&s)[2][4], const float (&key_scale)[2][2], int keys_left,
                                       Sums<Dim>& sums) {
  const int first = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    float largest = sums.largest[r];
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& score = s[t][2 * r + c];
        score = 8 * t + first + c < keys_left ? score * key_scale[t][c] : kLowest;
        largest = fmaxf(largest, score);
      }
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 2));
    const float keep = ft::exp2_fast(sums.largest[r] - largest);
    sums.largest[r] = largest;
    sums.total[r] *= keep;
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& score = s[t][2 * r + c];
        score = 8 * t + first + c < keys_left ? ft::exp2_fast(score - largest) : 0.0F;
        sums.total[r] += score;
      }
#pragma unroll
    for (int j = 0; j < Dim / 8; ++j) {
      sums.out[j][2 * r] *= keep;
      sums.out[j][2 * r + 1] *= keep;
    }
  }
}

/// One tile that has landed in `stage`, of which `keys_left` keys or more count.
template <KvType Type, int Dim, int Rows>
__device__ __forceinline__ void take_tile(const unsigned char* stage,
                                          const std::uint32_t (&query)[Dim / 16][4], float scale,
                                          int keys_left, Sums<Dim>& sums) {
  using S = Stage<Type, Dim>;
  const int first = static_cast<int>(threadIdx.x) % 4 * 2;
  float s[2][4] = {}, key_scale[2][2], value_scale[2][2];
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      key_scale[t][c] = scale;
      value_scale[t][c] = 1.0F;
      if constexpr (has_scales(Type)) {
        const auto* scales = reinterpret_cast<const float*>(stage + 2 * S::kTileBytes);
        key_scale[t][c] *= scales[8 * t + first + c];
        value_scale[t][c] = scales[kDecodeTile + 8 * t + first + c];
      }
    }
  score_tile<Type, Dim>(stage, query, s);
  soften<Dim, Rows>(s, key_scale, keys_left, sums);
  // Unused memory may hold anything, and zero times that is not zero: scales of tokens beyond the end are
  // left out.
  const auto weight = [&](int t, int row, int c) {
    if constexpr (!has_scales(Type)) return s[t][2 * row + c];
    return 8 * t + first + c < keys_left ? s[t][2 * row + c] * value_scale[t][c] : 0.0F;
  };
  const auto pair = [&](int t, int row) {
    return row < Rows ? ft::pack_bf16x2(weight(t, row, 0), weight(t, row, 1)) : 0U;
  };
  const std::uint32_t p[4] = {pair(0, 0), pair(0, 1), pair(1, 0), pair(1, 1)};
  add_values<Type, Dim>(stage + S::kTileBytes, p, sums.out);
}

/// The query heads of a group as the A operand, zeros beyond them. With bytes, the dims of a run of 16 go to
/// where four consecutive bytes of a key put theirs.
template <KvType Type, int Dim>
__device__ __forceinline__ void load_query(const Bf16* q, int group, std::uint32_t (&query)[Dim / 16][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < Dim / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int head = lane / 4 + i % 2 * 8;
      const int dim =
          has_scales(Type) ? 16 * k + lane % 4 * 4 + i / 2 * 2 : 16 * k + lane % 4 * 2 + i / 2 * 8;
      query[k][i] = head < group ? *reinterpret_cast<const std::uint32_t*>(q + head * Dim + dim) : 0U;
    }
}

/// Zeroes the rows of a tile behind the last key: what lies there was never written, and NaN times zero is
/// NaN.
template <KvType Type, int Dim>
__device__ __forceinline__ void clear_tail(unsigned char* stage, int keys_left) {
  using S = Stage<Type, Dim>;
  constexpr int kChunks = S::kRowBytes / 16;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int e = keys_left * kChunks + lane; e < kDecodeTile * kChunks; e += 32)
    *reinterpret_cast<uint4*>(stage + S::kTileBytes + swizzled<S::kRowBytes>(e / kChunks, e % kChunks)) =
        make_uint4(0, 0, 0, 0);
  __syncwarp();
}

// Each warp takes every fourth tile of the item through a ring of its own, so that nobody waits for the
// others until the end.
template <KvType Type, int Dim, int Rows>
__global__ void __launch_bounds__(kThreads) decode_attention_kernel(const DecodeAttentionArgs args) {
  using S = Stage<Type, Dim>;
  FT_DYN_SMEM(shared);
  ft::grid_dependency_wait();
  if (static_cast<int>(blockIdx.x) >= *args.item_count) return;
  const AttentionArgs& a = args.attention;
  const DecodeItem item = args.items[blockIdx.x];
  const int kv_head = static_cast<int>(blockIdx.y), group = a.query_heads / a.layout.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int keys = a.batch.context[item.sequence], row = a.batch.row_begin[item.sequence];
  const std::int32_t* pages = a.batch.pages + a.batch.page_begin[item.sequence];
  const int tiles_per_block = a.layout.block_tokens / kDecodeTile;
  const int mine = (item.tiles - warp + kWarps - 1) / kWarps;
  unsigned char* ring = shared + warp * kStages * S::kBytes;
  const auto tile_of = [&](int i) { return item.tile_begin + warp + i * kWarps; };
  const auto fetch = [&](int i) {
    if (i < mine)
      fetch_tile<Type, Dim>(a, kv_head, pages[tile_of(i) / tiles_per_block], tile_of(i),
                            ring + i % kStages * S::kBytes);
    ft::cp_async_commit();
  };
  std::uint32_t query[Dim / 16][4];
  load_query<Type, Dim>(
      static_cast<const Bf16*>(a.q) + row * a.q_stride + std::int64_t{kv_head} * group * Dim, group, query);
  Sums<Dim> sums;
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) fetch(i);
  for (int i = 0; i < mine; ++i) {
    ft::cp_async_wait<kStages - 2>();
    // The tile is there for all lanes, and all have read the one whose place is filled next.
    __syncwarp();
    fetch(i + kStages - 1);
    unsigned char* stage = ring + i % kStages * S::kBytes;
    const int keys_left = keys - tile_of(i) * kDecodeTile;
    if (keys_left < kDecodeTile) clear_tail<Type, Dim>(stage, keys_left);
    take_tile<Type, Dim, Rows>(stage, query, a.scale * detail::kLog2E, keys_left, sums);
  }
  ft::cp_async_wait<0>();
  __syncwarp();
  // Each warp leaves its rows where its ring was: [group][Dim] sums, then the largest score and the total of
  // each.
  auto* left = reinterpret_cast<float*>(ring);
#pragma unroll
  for (int r = 0; r < Rows; ++r) {
    sums.total[r] += __shfl_xor_sync(kAll, sums.total[r], 1);
    sums.total[r] += __shfl_xor_sync(kAll, sums.total[r], 2);
    const int head = lane / 4 + 8 * r;
    if (head >= group) continue;
#pragma unroll
    for (int j = 0; j < Dim / 8; ++j)
#pragma unroll
      for (int c = 0; c < 2; ++c) left[head * Dim + dim_of<Type>(j, c)] = sums.out[j][2 * r + c];
    if (lane % 4 != 0) continue;
    left[group * Dim + head] = sums.largest[r];
    left[group * Dim + group + head] = sums.total[r];
  }
  __syncthreads();
  const auto of_warp = [&](int w) {
    return reinterpret_cast<const float*>(shared + w * kStages * S::kBytes);
  };
  auto* partial = static_cast<float*>(args.partial);
  float* logs = partial + std::int64_t{args.items_max} * a.query_heads * Dim;
  const std::int64_t first = std::int64_t{item.slot} * a.query_heads + std::int64_t{kv_head} * group;
  for (int i = static_cast<int>(threadIdx.x); i < group * Dim; i += kThreads) {
    const int head = i / Dim;
    float largest = kLowest, total = 0.0F, sum = 0.0F;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, of_warp(w)[group * Dim + head]);
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float part = ft::exp2_fast(of_warp(w)[group * Dim + head] - largest);
      total += part * of_warp(w)[group * Dim + group + head];
      sum += part * of_warp(w)[i];
    }
    partial[first * Dim + i] = sum / total;
    if (i % Dim == 0) logs[first + head] = largest + ft::log2_fast(total);
  }
}

// One block per sequence and query head, one thread per dim.
__global__ void decode_merge_kernel(const DecodeAttentionArgs args) {
  ft::grid_dependency_wait();
  const AttentionArgs& a = args.attention;
  const int sequence = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int dims = a.layout.head_dim, dim = static_cast<int>(threadIdx.x);
  const auto* partial = static_cast<const float*>(args.partial);
  const float* logs = partial + std::int64_t{args.items_max} * a.query_heads * dims;
  const int begin = args.slot_begin[sequence], end = args.slot_begin[sequence + 1];
  float largest = kLowest, total = 0.0F, sum = 0.0F;
  for (int slot = begin; slot < end; ++slot)
    largest = fmaxf(largest, logs[std::int64_t{slot} * a.query_heads + head]);
  for (int slot = begin; slot < end; ++slot) {
    const std::int64_t at = std::int64_t{slot} * a.query_heads + head;
    const float part = ft::exp2_fast(logs[at] - largest);
    total += part;
    sum += part * partial[at * dims + dim];
  }
  const std::int64_t row = a.batch.row_begin[args.first + sequence];
  static_cast<Bf16*>(a.out)[row * a.out_stride + std::int64_t{head} * dims + dim] =
      ft::to_bf16(end > begin ? sum / total : 0.0F);
}

template <KvType Type, int Dim, int Rows>
void launch(const DecodeAttentionArgs& args, Stream stream) {
  constexpr std::size_t kShared = std::size_t{kWarps} * kStages * Stage<Type, Dim>::kBytes;
  // What a warp leaves at the end takes the place of its ring.
  static_assert(kStages * Stage<Type, Dim>::kBytes >= 16 * (Dim + 2) * static_cast<int>(sizeof(float)));
  const dim3 grid(static_cast<unsigned>(args.items_max),
                  static_cast<unsigned>(args.attention.layout.kv_heads));
  FT_LAUNCH_DEPENDENT((decode_attention_kernel<Type, Dim, Rows>), grid, kThreads, kShared, stream, args);
}

template <KvType Type>
void launch_type(const DecodeAttentionArgs& args, Stream stream) {
  const bool is_small = args.attention.query_heads / args.attention.layout.kv_heads <= 8;
  if (args.attention.layout.head_dim == 64)
    is_small ? launch<Type, 64, 1>(args, stream) : launch<Type, 64, 2>(args, stream);
  else
    is_small ? launch<Type, 128, 1>(args, stream) : launch<Type, 128, 2>(args, stream);
}

}  // namespace

std::size_t decode_partial_bytes(int items_max, int query_heads, int head_dim) {
  return static_cast<std::size_t>(items_max) * static_cast<std::size_t>(query_heads) *
         static_cast<std::size_t>(head_dim + 1) * sizeof(float);
}

bool decode_attention_supports(const KvLayout& layout, int query_heads) {
  return (layout.head_dim == 64 || layout.head_dim == 128) && layout.type != KvType::f32 &&
         layout.block_tokens % kDecodeTile == 0 && query_heads % layout.kv_heads == 0 &&
         query_heads / layout.kv_heads <= 16;
}

void decode_attention(const DecodeAttentionArgs& args, Stream stream) {
  const AttentionArgs& a = args.attention;
  require(decode_attention_supports(a.layout, a.query_heads), "decode_attention",
          "expected head_dim 64 or 128, groups up to 16 and blocks of whole tiles");
  require(a.activation == ElementType::bf16 && a.q_stride % 2 == 0, "decode_attention",
          "expected rows of bf16");
  if (args.sequences == 0) return;
  require(args.items_max >= 1, "decode_attention", "expected room for items");
  switch (a.layout.type) {
    case KvType::bf16: launch_type<KvType::bf16>(args, stream); break;
    case KvType::int8: launch_type<KvType::int8>(args, stream); break;
    default: launch_type<KvType::fp8>(args, stream);
  }
  const dim3 grid(static_cast<unsigned>(args.sequences), static_cast<unsigned>(a.query_heads));
  FT_LAUNCH_DEPENDENT(decode_merge_kernel, grid, a.layout.head_dim, 0, stream, args);
}

}  // namespace foretoken::cuda

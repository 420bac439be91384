#include "kernels/cuda/prefill_attention.hpp"

#include "kernels/cuda/attention_device.hpp"

namespace foretoken::cuda {
namespace {

using detail::kLowest;
using detail::swizzled;

constexpr int kWarps = kPrefillRows / 16;
constexpr int kThreads = 32 * kWarps;
/// Keys that are scored at a time.
constexpr int kKeys = 64;
constexpr int kStages = 2;
constexpr unsigned kAll = 0xffffffffU;

/// Shared memory: stages as the pool stores them and, for bytes, one tile of bf16 that they are widened into.
template <KvType Type, int Dim>
struct Tile {
  static constexpr int kRowBytes = Dim * kv_element_bytes(Type);
  static constexpr int kStageBytes = 2 * kKeys * kRowBytes;
  static constexpr int kWideRowBytes = Dim * 2;
  static constexpr int kWideBytes = has_scales(Type) ? 2 * kKeys * kWideRowBytes : 0;
  static constexpr int kBytes = kStages * kStageBytes + kWideBytes;
};

/// Where the keys or values of token `token` of a sequence lie.
__device__ __forceinline__ const unsigned char* token_row(const AttentionArgs& a, const std::int32_t* pages,
                                                          int token, KvPart part, int kv_head,
                                                          int row_bytes) {
  const auto* pool = static_cast<const unsigned char*>(a.pool);
  const int block_tokens = a.layout.block_tokens;
  return pool + page_offset_bytes(a.layout, pages[token / block_tokens], a.layer, part, kv_head) +
         token % block_tokens * row_bytes;
}

/// Starts the copies of keys and values `begin` .. `begin + kKeys`; what lies behind `end` becomes zeros.
template <KvType Type, int Dim>
__device__ __forceinline__ void fetch_tile(const AttentionArgs& a, const std::int32_t* pages, int kv_head,
                                           int begin, int end, unsigned char* stage) {
  using T = Tile<Type, Dim>;
  constexpr int kChunks = T::kRowBytes / 16;
  static_assert(kKeys * kChunks % kThreads == 0 || kKeys * kChunks < kThreads);
#pragma unroll
  for (int e = static_cast<int>(threadIdx.x); e < kKeys * kChunks; e += kThreads) {
    const int row = e / kChunks, chunk = e % kChunks, token = begin + row;
    const bool is_read = token < end;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      const unsigned char* from = token_row(a, pages, is_read ? token : begin,
                                            part == 0 ? KvPart::key : KvPart::value, kv_head, T::kRowBytes);
      ft::cp_async16(stage + part * kKeys * T::kRowBytes + swizzled<T::kRowBytes>(row, chunk),
                     from + chunk * 16, is_read);
    }
  }
}

/// Widens a stage of bytes, times the scales of their tokens.
template <KvType Type, int Dim>
__device__ __forceinline__ void widen_tile(const AttentionArgs& a, const std::int32_t* pages, int kv_head,
                                           int begin, int end, const unsigned char* stage,
                                           unsigned char* wide) {
  using T = Tile<Type, Dim>;
  const auto* pool = static_cast<const unsigned char*>(a.pool);
  for (int e = static_cast<int>(threadIdx.x); e < 2 * kKeys * Dim / 8; e += kThreads) {
    const int part = e / (kKeys * Dim / 8), row = e / (Dim / 8) % kKeys, eight = e % (Dim / 8);
    const int token = begin + row, block_tokens = a.layout.block_tokens;
    unsigned char* to = wide + part * kKeys * T::kWideRowBytes + swizzled<T::kWideRowBytes>(row, eight);
    if (token >= end) {
      *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
      continue;
    }
    const auto* scales = reinterpret_cast<const float*>(
        pool + scale_offset_bytes(a.layout, pages[token / block_tokens], a.layer,
                                  part == 0 ? KvPart::key : KvPart::value, kv_head));
    const float scale = scales[token % block_tokens];
    const unsigned char* from =
        stage + part * kKeys * T::kRowBytes + swizzled<T::kRowBytes>(row, eight / 2) + eight % 2 * 8;
    std::uint32_t pairs[4];
    detail::widen<Type>(*reinterpret_cast<const std::uint32_t*>(from), pairs[0], pairs[1]);
    detail::widen<Type>(*reinterpret_cast<const std::uint32_t*>(from + 4), pairs[2], pairs[3]);
#pragma unroll
    for (std::uint32_t& pair : pairs)
      pair = ft::pack_bf16x2(ft::low_float(pair) * scale, ft::high_float(pair) * scale);
    *reinterpret_cast<uint4*>(to) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

/// What a warp knows of its 16 rows: rows lane / 4 and lane / 4 + 8 are this lane's.
template <int Dim>
struct Rows {
  std::uint32_t query[Dim / 16][4];
  float out[Dim / 8][4] = {};
  float largest[2] = {kLowest, kLowest};
  float total[2] = {};
  /// Keys that each row sees.
  int keys[2];
};

/// s = q K^T for the tile's keys.
template <int Dim>
__device__ __forceinline__ void score(const unsigned char* keys, const Rows<Dim>& rows,
                                      float (&s)[kKeys / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int k = 0; k < Dim / 16; ++k)
#pragma unroll
    for (int t = 0; t < kKeys / 16; ++t) {
      std::uint32_t r[4];
      ft::ldmatrix4<false>(r,
                           keys + swizzled<2 * Dim>(16 * t + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2));
      const std::uint32_t low[2] = {r[0], r[1]}, high[2] = {r[2], r[3]};
      ft::mma_bf16(s[2 * t], rows.query[k], low);
      ft::mma_bf16(s[2 * t + 1], rows.query[k], high);
    }
}

/// Masks what a row must not see, exponentiates, and brings the sums to the new largest score.
template <int Dim>
__device__ __forceinline__ void soften(float (&s)[kKeys / 8][4], float scale, int begin, bool is_edge,
                                       Rows<Dim>& rows) {
  const int first = begin + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = rows.largest[r];
#pragma unroll
    for (int t = 0; t < kKeys / 8; ++t)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& x = s[t][2 * r + c];
        x *= scale;
        if (is_edge && first + 8 * t + c >= rows.keys[r]) x = kLowest;
        largest = fmaxf(largest, x);
      }
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 2));
    const float keep = ft::exp2_fast(rows.largest[r] - largest);
    rows.largest[r] = largest;
    rows.total[r] *= keep;
#pragma unroll
    for (int t = 0; t < kKeys / 8; ++t)
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        float& x = s[t][2 * r + c];
        x = ft::exp2_fast(x - largest);
        rows.total[r] += x;
      }
#pragma unroll
    for (int j = 0; j < Dim / 8; ++j) {
      rows.out[j][2 * r] *= keep;
      rows.out[j][2 * r + 1] *= keep;
    }
  }
}

/// out += p V.
template <int Dim>
__device__ __forceinline__ void add_values(const unsigned char* values, const float (&s)[kKeys / 8][4],
                                           Rows<Dim>& rows) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int t = 0; t < kKeys / 16; ++t) {
    const std::uint32_t p[4] = {
        ft::pack_bf16x2(s[2 * t][0], s[2 * t][1]), ft::pack_bf16x2(s[2 * t][2], s[2 * t][3]),
        ft::pack_bf16x2(s[2 * t + 1][0], s[2 * t + 1][1]), ft::pack_bf16x2(s[2 * t + 1][2], s[2 * t + 1][3])};
#pragma unroll
    for (int j = 0; j < Dim / 16; ++j) {
      std::uint32_t r[4];
      ft::ldmatrix4<true>(
          r, values + swizzled<2 * Dim>(16 * t + lane / 8 % 2 * 8 + lane % 8, 2 * j + lane / 16));
      const std::uint32_t low[2] = {r[0], r[1]}, high[2] = {r[2], r[3]};
      ft::mma_bf16(rows.out[2 * j], p, low);
      ft::mma_bf16(rows.out[2 * j + 1], p, high);
    }
  }
}

template <KvType Type, int Dim>
__global__ void __launch_bounds__(kThreads, 1) prefill_attention_kernel(const PrefillAttentionArgs args) {
  using T = Tile<Type, Dim>;
  FT_DYN_SMEM(shared);
  ft::grid_dependency_wait();
  const AttentionArgs& a = args.attention;
  const PrefillItem item = args.items[blockIdx.x];
  const int kv_head = static_cast<int>(blockIdx.y), group = a.query_heads / a.layout.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row_begin = a.batch.row_begin[item.sequence];
  const int tokens = a.batch.row_begin[item.sequence + 1] - row_begin;
  const int before = a.batch.context[item.sequence] - tokens;
  const std::int32_t* pages = a.batch.pages + a.batch.page_begin[item.sequence];
  const int packed = tokens * group;
  const int last = (item.row + kPrefillRows < packed ? item.row + kPrefillRows : packed) - 1;
  const int end = before + last / group + 1;  // keys that some row of the tile sees
  const int tiles = (end + kKeys - 1) / kKeys;

  const auto fetch = [&](int i) {
    if (i < tiles)
      fetch_tile<Type, Dim>(a, pages, kv_head, i * kKeys, end, shared + i % kStages * T::kStageBytes);
    ft::cp_async_commit();
  };
  fetch(0);

  // This lane's two rows, as token and head; rows beyond the sequence see no key and are not written.
  Rows<Dim> rows;
  int row_of[2];
  std::int64_t at[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    row_of[r] = item.row + warp * 16 + lane / 4 + 8 * r;
    rows.keys[r] = row_of[r] < packed ? before + row_of[r] / group + 1 : 0;
    at[r] = std::int64_t{kv_head * group + row_of[r] % group} * Dim;
  }
#pragma unroll
  for (int k = 0; k < Dim / 16; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = i % 2;
      const auto* q = static_cast<const Bf16*>(a.q) + (row_begin + row_of[r] / group) * a.q_stride + at[r];
      rows.query[k][i] = row_of[r] < packed
                             ? *reinterpret_cast<const std::uint32_t*>(q + 16 * k + lane % 4 * 2 + i / 2 * 8)
                             : 0U;
    }
  for (int i = 0; i < tiles; ++i) {
    ft::cp_async_wait<kStages - 2>();
    // The tile is there for all threads, and all have read the one whose place is filled next.
    __syncthreads();
    fetch(i + kStages - 1);
    const unsigned char* tile = shared + i % kStages * T::kStageBytes;
    if constexpr (has_scales(Type)) {
      unsigned char* wide = shared + kStages * T::kStageBytes;
      widen_tile<Type, Dim>(a, pages, kv_head, i * kKeys, end, tile, wide);
      __syncthreads();
      tile = wide;
    }
    float s[kKeys / 8][4] = {};
    score<Dim>(tile, rows, s);
    const bool is_edge =
        (i + 1) * kKeys > before + item.row / group + 1 || last - item.row + 1 < kPrefillRows;
    soften<Dim>(s, a.scale * detail::kLog2E, i * kKeys, is_edge, rows);
    add_values<Dim>(tile + kKeys * T::kWideRowBytes, s, rows);
  }
  ft::cp_async_wait<0>();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    rows.total[r] += __shfl_xor_sync(kAll, rows.total[r], 1);
    rows.total[r] += __shfl_xor_sync(kAll, rows.total[r], 2);
    if (row_of[r] >= packed) continue;
    const float inverse = rows.keys[r] > 0 ? 1.0F / rows.total[r] : 0.0F;
    auto* out = static_cast<Bf16*>(a.out) + (row_begin + row_of[r] / group) * a.out_stride + at[r];
#pragma unroll
    for (int j = 0; j < Dim / 8; ++j)
      *reinterpret_cast<std::uint32_t*>(out + 8 * j + lane % 4 * 2) =
          ft::pack_bf16x2(rows.out[j][2 * r] * inverse, rows.out[j][2 * r + 1] * inverse);
  }
}

template <KvType Type>
void launch(const PrefillAttentionArgs& args, Stream stream) {
  const dim3 grid(static_cast<unsigned>(args.item_count),
                  static_cast<unsigned>(args.attention.layout.kv_heads));
  if (args.attention.layout.head_dim == 64)
    FT_LAUNCH_DEPENDENT((prefill_attention_kernel<Type, 64>), grid, kThreads, (Tile<Type, 64>::kBytes),
                        stream, args);
  else
    FT_LAUNCH_DEPENDENT((prefill_attention_kernel<Type, 128>), grid, kThreads, (Tile<Type, 128>::kBytes),
                        stream, args);
}

}  // namespace

bool prefill_attention_supports(const KvLayout& layout, int query_heads) {
  return (layout.head_dim == 64 || layout.head_dim == 128) && layout.type != KvType::f32 &&
         layout.block_tokens % 16 == 0 && query_heads % layout.kv_heads == 0;
}

void prefill_attention(const PrefillAttentionArgs& args, Stream stream) {
  const AttentionArgs& a = args.attention;
  require(prefill_attention_supports(a.layout, a.query_heads), "prefill_attention",
          "expected head_dim 64 or 128, KV of bf16 or bytes, and blocks of whole tiles");
  require(a.activation == ElementType::bf16 && a.q_stride % 2 == 0 && a.out_stride % 2 == 0,
          "prefill_attention", "expected rows of bf16");
  if (args.item_count == 0) return;
  switch (a.layout.type) {
    case KvType::bf16: return launch<KvType::bf16>(args, stream);
    case KvType::int8: return launch<KvType::int8>(args, stream);
    default: return launch<KvType::fp8>(args, stream);
  }
}

}  // namespace foretoken::cuda

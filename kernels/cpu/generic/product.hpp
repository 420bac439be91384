#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/cpu/generic/accumulate.hpp"
#include "kernels/cpu/generic/math.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken::cpu {
namespace {

/// What one tile of a product needs to know.
struct ProductTile {
  const ProductArgs* args;
  int row;
  int group;
  std::int64_t group_bytes;
  Ahead ahead;
};

template <class O, int R, int P>
inline void store_sums(const ProductTile& tile, typename O::F (&acc)[R][P]) {
  const ProductArgs& args = *tile.args;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    float* y = static_cast<float*>(args.y) + (tile.row + r) * args.y_stride;
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const int column = tile.group * kGroupColumns + p * 16;
      const int n = std::min(16, args.weights.columns - column);
      if (n <= 0) break;
      typename O::F sum = acc[r][p];
      if (args.epilogue == Epilogue::add)
        sum = O::add(sum, n == 16 ? O::load(y + column) : O::load(y + column, n));
      store_some<O>(y + column, sum, n);
    }
  }
}

template <class O, int R, int P>
inline void store_gated(const ProductTile& tile, typename O::F (&acc)[R][P]) {
  const ProductArgs& args = *tile.args;
  const int features = args.features > 0 ? args.features : args.weights.columns / 2;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int p = 0; p < P; p += 2) {
      const int column = tile.group * 16 + p * 8;
      const int n = std::min(16, features - column);
      if (n <= 0) break;
      const typename O::F value = O::mul(silu<O>(acc[r][p]), acc[r][p + 1]);
      const std::int64_t offset = (tile.row + r) * args.y_stride + column;
      if (args.y_type == ElementType::f32)
        store_some<O>(static_cast<float*>(args.y) + offset, value, n);
      else
        store_some<O>(static_cast<Bf16*>(args.y) + offset, value, n);
    }
}

/// The last step of an odd depth stored in pairs: the second of the pair is zero on both sides.
template <class O, class S, int R, int P>
inline void accumulate_odd_depth(typename O::F (&acc)[R][P], const typename O::template Activation<S>* x,
                                 std::int64_t x_stride, const std::byte* const (&w)[P], std::int64_t offset) {
  typename O::template Activation<S> pairs[R * 2] = {};
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) pairs[r * 2] = x[r * x_stride];
  const std::byte* last[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) last[p] = w[p] + offset;
  accumulate<O, S>(acc, pairs, 2, last, 0, 1);
}

/// R rows by P panels of 16 columns over the whole depth, then the epilogue.
template <class O, class S, int R, int P>
[[gnu::noinline]] void product_tile(const ProductTile& tile) {
  using Activation = typename O::template Activation<S>;
  const ProductArgs& args = *tile.args;
  const std::byte* w[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p)
    w[p] = static_cast<const std::byte*>(args.weights.data) + (tile.group + p / 2) * tile.group_bytes +
           p % 2 * kPanelStepBytes;
  const Activation* x = static_cast<const Activation*>(args.x) + tile.row * args.x_stride;
  const int steps = args.weights.depth / kStepDepth<S>;
  typename O::F acc[R][P];
  clear<O>(acc);
  accumulate<O, S>(acc, x, args.x_stride, w, kPackedStepBytes, steps, tile.ahead);
  if (kStepDepth<S> == 2 && args.weights.depth % 2 != 0)
    accumulate_odd_depth<O, S>(acc, x + steps * 2, args.x_stride, w, steps * kPackedStepBytes);
  if (args.epilogue == Epilogue::silu_mul)
    store_gated<O>(tile, acc);
  else
    store_sums<O>(tile, acc);
}

using ProductTileFunction = void (*)(const ProductTile&);

template <class O, class S, bool kNarrow, int... R>
constexpr std::array<ProductTileFunction, sizeof...(R)> tile_functions(std::integer_sequence<int, R...>) {
  return {product_tile < O, S, R + 1, kNarrow ? 2 : O::panels_for(R + 1) > ...};
}

/// Rows of x that are kept in the second-level cache while all groups of columns pass over them.
inline constexpr std::int64_t kRowBlockBytes = 384 << 10;

/// How far ahead of its loads a lone tile of several rows fetches. Hardware fetches too little ahead of a
/// stream that is read with arithmetic in between: a batch of 8 took the time of its reads plus half that of
/// its arithmetic.
inline constexpr std::int64_t kStreamAheadBytes = 16 << 10;

/// One block of rows against the groups [begin, end). Rows are cut into tiles of equal size, one more or
/// less, so that 8 rows are not 6 and 2.
template <class O, class S>
inline void product_rows(const ProductArgs& args, Range rows, Range groups, std::int64_t group_bytes) {
  static constexpr auto kNarrow = tile_functions<O, S, true>(std::make_integer_sequence<int, O::kRowsMax>());
  static constexpr auto kWide = tile_functions<O, S, false>(std::make_integer_sequence<int, O::kRowsMax>());
  const int count = static_cast<int>(rows.end - rows.begin);
  const int tiles = (count + O::kRowsMax - 1) / O::kRowsMax;
  const int wide_groups = O::panels_for((count + tiles - 1) / tiles) / 2;
  const auto* weights = static_cast<const std::byte*>(args.weights.data);
  for (std::int64_t group = groups.begin; group < groups.end;) {
    const bool is_wide = group + wide_groups <= groups.end;
    const std::int64_t next = group + (is_wide ? wide_groups : 1);
    for (int tile = 0; tile < tiles; ++tile) {
      const Range part = split(count, {tile, tiles});
      const auto height = static_cast<std::size_t>(part.end - part.begin);
      Ahead ahead;
      const int over = tiles >= 4 ? 4 : 2, slice = tile - (tiles - over);
      if (tiles > 1 && slice >= 0 && next < groups.end)
        ahead = {weights + next * group_bytes + slice * group_bytes / over, 2 * kUnroll / over, false};
      if (tiles == 1 && wide_groups == 1)
        ahead = {weights + group * group_bytes + kStreamAheadBytes, 2 * kUnroll, true};
      const ProductTile work{&args, static_cast<int>(rows.begin + part.begin), static_cast<int>(group),
                             group_bytes, ahead};
      (is_wide && O::panels_for(static_cast<int>(height)) == 2 * wide_groups ? kWide
                                                                             : kNarrow)[height - 1](work);
    }
    group = next;
  }
}

template <class O, class S>
void product_of(const ProductArgs& args, Share share) {
  using Activation = typename O::template Activation<S>;
  const int total_groups = (args.weights.columns + kGroupColumns - 1) / kGroupColumns;
  const std::int64_t stored_depth = (args.weights.depth + kStepDepth<S> - 1) / kStepDepth<S>;
  const std::int64_t row_bytes = std::int64_t{args.weights.depth} * sizeof(Activation);
  const std::int64_t block_rows =
      std::max<std::int64_t>(O::kRowsMax, kRowBlockBytes / row_bytes / O::kRowsMax * O::kRowsMax);
  const int blocks = static_cast<int>((args.rows + block_rows - 1) / block_rows);
  for (int block = 0; block < blocks; ++block)
    product_rows<O, S>(args, split(args.rows, {block, blocks}), split(total_groups, share),
                       stored_depth * kPackedStepBytes);
}

template <class O>
void product(const ProductArgs& args, Share share) {
  if (args.weights.type == ElementType::f32)
    product_of<O, float>(args, share);
  else
    product_of<O, Bf16>(args, share);
}

}  // namespace
}  // namespace foretoken::cpu

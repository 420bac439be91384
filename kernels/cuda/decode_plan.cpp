#include "kernels/cuda/decode_plan.hpp"

#include <algorithm>

namespace foretoken::cuda {
namespace {

constexpr int kItemsPerMultiprocessor = 4;
/// Warps of a block; tiles of an item are dealt out among them.
constexpr int kWarps = 4;
/// Below this an item is mostly its beginning and its end.
constexpr std::int64_t kTilesMin = 2 * kWarps;

int items_wanted(int kv_heads, int multiprocessors) {
  return (kItemsPerMultiprocessor * multiprocessors + kv_heads - 1) / kv_heads;
}

std::int64_t tiles_of(std::int32_t context) {
  return (std::int64_t{context} + kDecodeTile - 1) / kDecodeTile;
}

}  // namespace

int decode_items_max(int sequences, int kv_heads, int multiprocessors) {
  return items_wanted(kv_heads, multiprocessors) + sequences;
}

int plan_decode(std::span<const std::int32_t> contexts, int first, int kv_heads, int multiprocessors,
                DecodeItem* items, std::int32_t* slot_begin) {
  std::int64_t all = 0;
  for (const std::int32_t context : contexts) all += tiles_of(context);
  const std::int64_t wanted = items_wanted(kv_heads, multiprocessors);
  std::int64_t length = std::max(kTilesMin, (all + wanted - 1) / wanted);
  length = (length + kWarps - 1) / kWarps * kWarps;
  int count = 0;
  for (std::size_t s = 0; s < contexts.size(); ++s) {
    slot_begin[s] = count;
    const std::int64_t tiles = tiles_of(contexts[s]);
    for (std::int64_t begin = 0; begin < tiles; begin += length, ++count)
      items[count] = {first + static_cast<std::int32_t>(s), static_cast<std::int32_t>(begin),
                      static_cast<std::int32_t>(std::min(length, tiles - begin)), count};
  }
  slot_begin[contexts.size()] = count;
  return count;
}

}  // namespace foretoken::cuda

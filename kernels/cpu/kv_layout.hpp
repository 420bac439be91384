#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/element.hpp"

namespace foretoken::cpu {

/// Slots of a key tile: attention scores this many keys at a time, one per vector lane.
inline constexpr int kTileSlots = 16;

/// Where cached keys and values lie: [block][layer][K|V][kv_head][page], a page being `block_tokens` x
/// `head_dim` elements. A block over all layers is one contiguous piece, so that a swap is one copy. Inside a
/// page the order of elements is the kernels' own (`kv_offset` tells it): for bf16 and `block_tokens` a
/// multiple of 16, keys stand [slot / 16][dim / 2][16][2] and values [slot / 2][dim][2], as a packed matrix;
/// for f32 [slot / 16][dim][16] and [slot][dim]; for other block sizes both are plain [slot][dim], correct
/// but slower.
struct KvLayout {
  ElementType type = ElementType::bf16;
  int layers = 1;
  int kv_heads = 1;
  int block_tokens = 16;
  /// A multiple of 16, at most 256.
  int head_dim = 64;

  /// Elements of one page: the keys, or the values, of one head.
  constexpr std::int64_t page_elements() const { return std::int64_t{block_tokens} * head_dim; }
  /// Elements of one layer in one block.
  constexpr std::int64_t layer_elements() const { return 2 * kv_heads * page_elements(); }
  /// Elements of one block over all layers.
  constexpr std::int64_t block_elements() const { return layers * layer_elements(); }
  /// Bytes of one block over all layers: what a swap moves.
  constexpr std::size_t block_bytes() const {
    return static_cast<std::size_t>(block_elements()) * element_bytes(type);
  }
  /// Whether pages stand in tiles that kernels read in place.
  constexpr bool is_tiled() const { return block_tokens % kTileSlots == 0; }
};

/// Whether an element of a page is a key's or a value's.
enum class KvPart { key, value };

/// Offset, in elements from the start of a page, of dimension `dim` of the token in `slot`.
constexpr std::int64_t kv_offset(const KvLayout& layout, KvPart part, int slot, int dim) {
  const std::int64_t plain = std::int64_t{slot} * layout.head_dim + dim;
  if (!layout.is_tiled()) return plain;
  const bool pairs = layout.type == ElementType::bf16;
  if (part == KvPart::value)
    return pairs ? (std::int64_t{slot / 2} * layout.head_dim + dim) * 2 + slot % 2 : plain;
  const std::int64_t tile = std::int64_t{slot / kTileSlots} * kTileSlots * layout.head_dim;
  const int lane = slot % kTileSlots;
  return tile + (pairs ? (std::int64_t{dim / 2} * kTileSlots + lane) * 2 + dim % 2
                       : std::int64_t{dim} * kTileSlots + lane);
}

/// Offset, in elements from the start of the pool, of the page of `part` of `kv_head` in `layer` of `block`.
constexpr std::int64_t page_offset(const KvLayout& layout, std::int64_t block, int layer, KvPart part,
                                   int kv_head) {
  return block * layout.block_elements() + layer * layout.layer_elements() +
         ((part == KvPart::value ? layout.kv_heads : 0) + kv_head) * layout.page_elements();
}

}  // namespace foretoken::cpu

#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// Where cached keys and values lie on the device: [block][layer][K|V][kv_head][block_tokens][head_dim] in
/// plain order and, behind the elements of each block, the scales of 8-bit types,
/// [layer][K|V][kv_head][block_tokens] f32. So a block over all layers is one contiguous piece, and a swap is
/// one copy. Blocks begin at multiples of 16 bytes.
struct KvLayout {
  KvType type = KvType::bf16;
  int layers = 1;
  int kv_heads = 1;
  /// Tensor-core kernels want a multiple of 16; the others take any size.
  int block_tokens = 16;
  /// A multiple of 16, at most 256.
  int head_dim = 64;

  /// Elements of one page: the keys, or the values, of one head in one block.
  FT_HOST_DEVICE constexpr std::int64_t page_elements() const {
    return std::int64_t{block_tokens} * head_dim;
  }
  /// Elements of one layer in one block.
  FT_HOST_DEVICE constexpr std::int64_t layer_elements() const { return 2 * kv_heads * page_elements(); }
  /// Elements of one block over all layers.
  FT_HOST_DEVICE constexpr std::int64_t block_elements() const { return layers * layer_elements(); }
  /// Bytes of one page.
  FT_HOST_DEVICE constexpr std::int64_t page_bytes() const {
    return page_elements() * kv_element_bytes(type);
  }
  /// Bytes from the start of a block to its scales.
  FT_HOST_DEVICE constexpr std::int64_t scales_begin() const {
    return block_elements() * kv_element_bytes(type);
  }
  /// Scales of one block over all layers; 0 for types without.
  FT_HOST_DEVICE constexpr std::int64_t block_scales() const {
    return has_scales(type) ? std::int64_t{layers} * 2 * kv_heads * block_tokens : 0;
  }
  /// Bytes from one block to the next, scales included: what a swap moves.
  FT_HOST_DEVICE constexpr std::int64_t block_bytes() const {
    return (scales_begin() + block_scales() * 4 + 15) / 16 * 16;
  }
};

/// Whether an element of a page is a key's or a value's.
enum class KvPart : std::uint8_t { key, value };

/// Number of the page of `part` of `kv_head` in `layer` among the pages of its block.
FT_HOST_DEVICE constexpr std::int64_t page_in_block(const KvLayout& layout, int layer, KvPart part,
                                                    int kv_head) {
  return (std::int64_t{layer} * 2 + (part == KvPart::value ? 1 : 0)) * layout.kv_heads + kv_head;
}

/// Bytes from the start of the pool to a page of `block`.
FT_HOST_DEVICE constexpr std::int64_t page_offset_bytes(const KvLayout& layout, std::int64_t block, int layer,
                                                        KvPart part, int kv_head) {
  return block * layout.block_bytes() + page_in_block(layout, layer, part, kv_head) * layout.page_bytes();
}

/// Bytes from the start of the pool to the `block_tokens` scales of a page of `block` (8-bit types only).
FT_HOST_DEVICE constexpr std::int64_t scale_offset_bytes(const KvLayout& layout, std::int64_t block,
                                                         int layer, KvPart part, int kv_head) {
  return block * layout.block_bytes() + layout.scales_begin() +
         page_in_block(layout, layer, part, kv_head) * layout.block_tokens * 4;
}

}  // namespace foretoken::cuda

#pragma once
#include <cstdint>
#include <span>

#include "kernels/host_device.hpp"

namespace foretoken::cuda {

/// Tokens that decode attention takes at a time.
inline constexpr int kDecodeTile = 16;

/// Some tiles of one decoding sequence, for one block per kv head.
struct DecodeItem {
  std::int32_t sequence;
  std::int32_t tile_begin;
  std::int32_t tiles;
  /// Row of partial results that the item writes.
  std::int32_t slot;
};

/// Items that plans for so many sequences never exceed: what grids and buffers are made for.
int decode_items_max(int sequences, int kv_heads, int multiprocessors);

/// Cuts the contexts of sequences `first` .. into items that keep a device evenly busy: about four for each
/// multiprocessor and kv head together, none shorter than two tiles for each of a block's warps. Writes the
/// items, and to `slot_begin` ([sequences + 1]) which rows of partial results belong to each; returns the
/// number of items. A sequence's cut, and so the last bits of its result, depends on the sum of all contexts.
int plan_decode(std::span<const std::int32_t> contexts, int first, int kv_heads, int multiprocessors,
                DecodeItem* items, std::int32_t* slot_begin);

}  // namespace foretoken::cuda

#pragma once
#include <cstdint>
#include <span>

namespace foretoken::cuda {

/// Rows that one block of prefill attention takes: tokens times query heads of one group, head by head.
inline constexpr int kPrefillRows = 128;

/// One block's rows, for each kv head.
struct PrefillItem {
  std::int32_t sequence;
  /// The first packed row, token * group + head.
  std::int32_t row;
};

/// Items of sequences with so many rows in all.
constexpr int prefill_items_max(int rows, int sequences, int group) {
  return (rows * group + kPrefillRows - 1) / kPrefillRows + sequences;
}

/// Cuts the rows of the first `sequences` sequences into items, those that see most keys first, so that no
/// long one is left for the end. `row_begin` has [sequences + 1], `context` [sequences]. Returns the number
/// of items.
int plan_prefill(std::span<const std::int32_t> row_begin, std::span<const std::int32_t> context,
                 int sequences, int group, PrefillItem* items);

}  // namespace foretoken::cuda

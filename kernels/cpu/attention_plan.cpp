#include "kernels/cpu/attention_plan.hpp"

#include <algorithm>

namespace foretoken::cpu {
namespace {

/// Query rows (tokens times heads of a group) that share a pass over the keys; 64 rows keep scores,
/// probabilities and sums in the first-level cache.
constexpr int kRowsPerItem = 64;

/// Starting an item costs about as much as scoring this many keys for one row.
constexpr std::int64_t kItemOverheadKeys = 64;

std::int64_t item_cost(const AttentionBatch& batch, const AttentionItem& item, int group) {
  const std::int64_t rows = batch.row_begin[item.sequence + 1] - batch.row_begin[item.sequence];
  const std::int64_t first = batch.context[item.sequence] - rows + item.row + 1;
  const std::int64_t keys = item.rows * first + std::int64_t{item.rows} * (item.rows - 1) / 2;
  return keys * group + kItemOverheadKeys;
}

}  // namespace

void plan_attention(const AttentionBatch& batch, int query_heads, int kv_heads, int members,
                    AttentionPlan& plan) {
  const int group = query_heads / kv_heads;
  const int tokens_per_item = std::max(1, kRowsPerItem / group);
  plan.items.clear();
  std::int64_t total = 0;
  for (int s = 0; s < batch.sequences; ++s) {
    const int rows = batch.row_begin[s + 1] - batch.row_begin[s];
    for (int head = 0; head < kv_heads; ++head)
      for (int row = 0; row < rows; row += tokens_per_item) {
        plan.items.push_back({s, head, row, std::min(tokens_per_item, rows - row)});
        total += item_cost(batch, plan.items.back(), group);
      }
  }
  plan.item_begin.assign(static_cast<std::size_t>(members) + 1, static_cast<std::int32_t>(plan.items.size()));
  plan.item_begin[0] = 0;
  std::int64_t done = 0;
  int member = 1;
  for (std::size_t i = 0; i < plan.items.size() && member < members; ++i) {
    const std::int64_t cost = item_cost(batch, plan.items[i], group);
    // The cut falls before the item whose middle passes the member's end.
    while (member < members && (2 * done + cost) * members > 2 * total * member)
      plan.item_begin[static_cast<std::size_t>(member++)] = static_cast<std::int32_t>(i);
    done += cost;
  }
}

}  // namespace foretoken::cpu

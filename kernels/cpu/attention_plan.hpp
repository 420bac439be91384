#pragma once
#include <cstdint>
#include <vector>

namespace foretoken::cpu {

/// The sequences of one step as attention sees them. Rows (new tokens) of a sequence are consecutive, its
/// sequences in order. Everything is owned by the caller.
struct AttentionBatch {
  int sequences = 0;
  /// [sequences + 1]: rows of sequence s are row_begin[s] .. row_begin[s + 1]; none is allowed.
  const std::int32_t* row_begin = nullptr;
  /// [sequences]: cached tokens of s once this step's are written. Row i of s sees the first
  /// context[s] - rows(s) + i + 1 of them.
  const std::int32_t* context = nullptr;
  /// [sequences + 1]: pages of s are pages[page_begin[s]] ..., at least ceil(context / block_tokens) of them.
  const std::int32_t* page_begin = nullptr;
  /// Block numbers.
  const std::int32_t* pages = nullptr;
};

/// A piece of attention work: some rows of one sequence, for one key/value head.
struct AttentionItem {
  std::int32_t sequence;
  std::int32_t kv_head;
  std::int32_t row;
  std::int32_t rows;
};

/// Attention work of one step cut evenly, in key reads, over a team. Made once per step, used by every layer.
/// Its vectors keep their capacity, so that planning allocates nothing once warm.
struct AttentionPlan {
  std::vector<AttentionItem> items;
  /// [members + 1]: items of member m are item_begin[m] .. item_begin[m + 1].
  std::vector<std::int32_t> item_begin;
};

/// Fills `plan` for `members` threads. `query_heads` / `kv_heads` must be whole. The cut never changes a
/// result: each row is computed by one member, in an order that depends on its own context only.
void plan_attention(const AttentionBatch& batch, int query_heads, int kv_heads, int members,
                    AttentionPlan& plan);

}  // namespace foretoken::cpu

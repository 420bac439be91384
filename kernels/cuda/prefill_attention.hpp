#pragma once
#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/prefill_plan.hpp"

namespace foretoken::cuda {

/// Attention of chunks, and of any other rows, in tiles of rows that the host lists.
struct PrefillAttentionArgs {
  /// Rows are bf16.
  AttentionArgs attention;
  /// In device memory: from plan_prefill.
  const PrefillItem* items = nullptr;
  int item_count = 0;
};

/// Whether `prefill_attention` has kernels for a model and a pool: head_dim 64 or 128, KV of bf16, int8 or
/// fp8, blocks in whole tiles of 16 tokens.
bool prefill_attention_supports(const KvLayout& layout, int query_heads);

/// Causal attention over paged keys and values by tensor cores (FlashAttention-2; Dao, 2023): each key tile
/// is read once for all query heads of a group. A row's bits depend on its own keys and values, and on where
/// its tile begins.
void prefill_attention(const PrefillAttentionArgs& args, Stream stream);

}  // namespace foretoken::cuda

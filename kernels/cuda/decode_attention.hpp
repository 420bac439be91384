#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/decode_plan.hpp"

namespace foretoken::cuda {

/// Attention of sequences with one row each, split over their contexts by a plan of the host.
struct DecodeAttentionArgs {
  /// Rows are bf16; of the batch, only sequences `first` .. `first + sequences` take part.
  AttentionArgs attention;
  int first = 0;
  int sequences = 0;
  /// In device memory: from plan_decode.
  const DecodeItem* items = nullptr;
  const std::int32_t* item_count = nullptr;
  const std::int32_t* slot_begin = nullptr;
  /// Items that there is a block for; those beyond `item_count` end at once. So recorded work fits any plan.
  int items_max = 0;
  /// decode_partial_bytes(items_max, query_heads, head_dim) of device memory.
  void* partial = nullptr;
};

/// Bytes that partial results take.
std::size_t decode_partial_bytes(int items_max, int query_heads, int head_dim);

/// Whether `decode_attention` has kernels for a model and a pool: head_dim 64 or 128, up to 16 query heads
/// per kv head, KV of bf16, int8 or fp8, blocks in whole tiles of 16 tokens.
bool decode_attention_supports(const KvLayout& layout, int query_heads);

/// Attention by tensor cores at the rate of the memory, then the merge of the parts by their log-sum-exps. A
/// sequence without context gives zeros.
void decode_attention(const DecodeAttentionArgs& args, Stream stream);

}  // namespace foretoken::cuda

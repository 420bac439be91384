#pragma once
#include <cstdint>

#include "kernels/cuda/kv_layout.hpp"

namespace foretoken::cuda {

/// The sequences of one step as attention sees them, in device memory. Rows (new tokens) of a sequence are
/// consecutive, its sequences in order.
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

/// out = softmax(scale q K^T) V, causal, over paged keys and values, query heads in groups over the kv heads.
struct AttentionArgs {
  AttentionBatch batch;
  /// Rows of all sequences together, or more: grids are made for so many.
  int rows = 0;
  int query_heads = 0;
  KvLayout layout;
  int layer = 0;
  const void* pool = nullptr;
  /// [rows][query_heads][head_dim] of type `activation`.
  const void* q = nullptr;
  std::int64_t q_stride = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType activation = ElementType::bf16;
  float scale = 1.0F;
};

}  // namespace foretoken::cuda

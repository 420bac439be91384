#pragma once
#include <cstdint>

#include "kernels/cuda/kv_layout.hpp"

namespace foretoken::cuda {

/// Rotates Q and K (the halves convention of Hugging Face: dims i and i + head_dim / 2 turn together), writes Q for
/// attention and K and V into the paged pool.
struct RopeKvArgs {
  int rows = 0;
  int query_heads = 0;
  KvLayout layout;
  int layer = 0;
  /// [rows][(query_heads + 2 kv_heads) head_dim] of type `activation`: Q, K, V of a row one after the other.
  const void* qkv = nullptr;
  /// Even.
  std::int64_t qkv_stride = 0;
  /// [(query_heads + 2 kv_heads) head_dim] f32, added before all else, or null.
  const float* bias = nullptr;
  /// [rows]: row of `cosine` and `sine` to use.
  const std::int32_t* positions = nullptr;
  /// [rows]: block * block_tokens + offset in the block, or negative for a dead row, whose K and V go nowhere.
  const std::int64_t* slots = nullptr;
  /// [positions][head_dim / 2] f32.
  const float* cosine = nullptr;
  const float* sine = nullptr;
  void* pool = nullptr;
  /// [rows][query_heads head_dim] of type `activation`.
  void* q_out = nullptr;
  /// Even.
  std::int64_t q_stride = 0;
  ElementType activation = ElementType::bf16;
};

/// Runs on `stream`. Each row's cached bits depend on the row alone.
void rope_kv(const RopeKvArgs& args, Stream stream);

}  // namespace foretoken::cuda

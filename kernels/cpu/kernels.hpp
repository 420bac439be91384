#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/attention_plan.hpp"
#include "kernels/cpu/isa.hpp"
#include "kernels/cpu/kv_layout.hpp"
#include "kernels/cpu/packed.hpp"
#include "kernels/cpu/share.hpp"

namespace foretoken::cpu {

/// What a product does with its sums. Every sum runs over the depth in the same order whatever the number of
/// rows, so that a row's result does not depend, in any bit, on the other rows or on the number of threads.
enum class Epilogue {
  /// y = x W^T, f32 [rows, columns].
  store,
  /// y += x W^T, f32: the residual.
  add,
  /// y = silu(gate) * up, [rows, columns / 2] of type `y_type`: W packed by Columns::gate and Columns::up.
  silu_mul,
};

/// y[M,N] = x[M,K] W[N,K]^T with f32 accumulation.
struct ProductArgs {
  PackedMatrix weights;
  int rows = 0;
  /// Type must be activation_type(isa, weights.type).
  const void* x = nullptr;
  /// Elements from one row of x to the next.
  std::int64_t x_stride = 0;
  void* y = nullptr;
  /// Elements from one row of y to the next.
  std::int64_t y_stride = 0;
  Epilogue epilogue = Epilogue::store;
  /// Used by silu_mul only: f32 or bf16.
  ElementType y_type = ElementType::f32;
  /// Outputs written by silu_mul; 0 means columns / 2. Fewer when features is not a multiple of 16.
  int features = 0;
};

/// out = x / sqrt(mean(x^2) + epsilon) * weight for each row (Zhang and Sennrich, 2019).
struct RmsNormArgs {
  int rows = 0;
  int dim = 0;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  /// [dim] f32.
  const float* weight = nullptr;
  float epsilon = 1e-5F;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType out_type = ElementType::f32;
  /// Rows to read, [rows], or null for all in order: gathers the last rows before the LM head in the same
  /// pass.
  const std::int32_t* row_index = nullptr;
};

/// Rotates Q and K (the halves convention of Hugging Face: dims i and i + head_dim / 2 turn together), writes
/// K and V into the cache and Q for attention.
struct RopeArgs {
  int rows = 0;
  int query_heads = 0;
  KvLayout layout;
  int layer = 0;
  /// f32 [rows][(query_heads + 2 kv_heads) head_dim]: Q, K, V of a row one after the other.
  const float* qkv = nullptr;
  std::int64_t qkv_stride = 0;
  /// [rows]: row of `cosine` and `sine` to use.
  const std::int32_t* positions = nullptr;
  /// [rows]: block * block_tokens + slot in the pool, or negative for a dead row, whose K and V go nowhere.
  const std::int64_t* slots = nullptr;
  /// [positions][head_dim / 2], filled by fill_rope_table.
  const float* cosine = nullptr;
  const float* sine = nullptr;
  void* pool = nullptr;
  void* q_out = nullptr;
  std::int64_t q_stride = 0;
  /// Type must be activation_type(isa, layout.type).
  ElementType q_type = ElementType::f32;
};

/// out = softmax(scale q K^T) V, causal, over paged keys and values, query heads in groups over the kv heads.
struct AttentionArgs {
  AttentionBatch batch;
  int query_heads = 0;
  KvLayout layout;
  int layer = 0;
  const void* pool = nullptr;
  /// [rows][query_heads][head_dim] of activation_type(isa, layout.type).
  const void* q = nullptr;
  std::int64_t q_stride = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType out_type = ElementType::f32;
  float scale = 1.0F;
};

/// out[r] = table[tokens[r]], f32. Negative tokens (dead rows) give zeros.
struct EmbedArgs {
  int rows = 0;
  int dim = 0;
  const std::int32_t* tokens = nullptr;
  /// [vocabulary][dim], plain row-major.
  const void* table = nullptr;
  ElementType table_type = ElementType::bf16;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

/// out = silu(gate) * up, element by element, for callers that keep the two apart.
struct SiluMulArgs {
  int rows = 0;
  int dim = 0;
  const float* gate = nullptr;
  const float* up = nullptr;
  std::int64_t in_stride = 0;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType out_type = ElementType::f32;
};

/// tokens[r] = the first index of the largest logit of row r.
struct ArgmaxArgs {
  int rows = 0;
  int dim = 0;
  const float* logits = nullptr;
  std::int64_t stride = 0;
  std::int32_t* tokens = nullptr;
};

/// Whole blocks from one pool to another: a swap. Each pair is copied in one piece.
struct CopyBlocksArgs {
  int blocks = 0;
  std::size_t block_bytes = 0;
  const void* source = nullptr;
  void* target = nullptr;
  /// [blocks]: block numbers in the source pool and in the target pool.
  const std::int32_t* from = nullptr;
  const std::int32_t* to = nullptr;
};

/// The kernels of one ISA. Each function is called by every member of a team with its own share; a barrier is
/// due between a kernel and one that reads what it wrote.
struct Kernels {
  Isa isa;
  void (*product)(const ProductArgs&, Share);
  void (*rms_norm)(const RmsNormArgs&, Share);
  void (*rope_and_write_kv)(const RopeArgs&, Share);
  /// `plan` must be made for share.count members.
  void (*attention)(const AttentionArgs&, const AttentionPlan& plan, Share);
  void (*silu_mul)(const SiluMulArgs&, Share);
  void (*argmax)(const ArgmaxArgs&, Share);
  void (*embed)(const EmbedArgs&, Share);
  void (*floats_to_bf16)(const float* source, Bf16* target, std::int64_t count, Share);
  void (*bf16_to_floats)(const Bf16* source, float* target, std::int64_t count, Share);
};

/// The kernels of `isa`, which must be available.
const Kernels& kernels(Isa isa);

/// The kernels of active_isa().
const Kernels& kernels();

/// Copies blocks between pools; whole blocks are dealt out over the team.
void copy_blocks(const CopyBlocksArgs& args, Share share);

/// Fills `cosine` and `sine`, [positions][head_dim / 2], with the angles position * theta^(-2 i / head_dim)
/// (Su et al., 2021), computed in double precision.
void fill_rope_table(int positions, int head_dim, double theta, float* cosine, float* sine);

}  // namespace foretoken::cpu

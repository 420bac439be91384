#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "backend/cuda/products.hpp"
#include "backend/cuda/runtime.hpp"
#include "backend/cuda/step_memory.hpp"
#include "backend/cuda/weights.hpp"
#include "backend/step_rows.hpp"
#include "kernels/cuda/decode_attention.hpp"
#include "kernels/cuda/kv_layout.hpp"
#include "kernels/cuda/prefill_attention.hpp"

namespace foretoken {

/// Where stages put their work; it keeps the order by itself.
struct CudaQueue {
  cuda::Stream stream = nullptr;
  void barrier() const {}
};

/// The stages of a step on a CUDA device: `prepare`, `send`, then each stage queues its kernels. Results are
/// there when the stream has come to the end of `fetch`.
template <>
class Stages<Cuda> {
 public:
  /// Runs `weights`, which must outlive it, with keys and values of `layout` in `pool`. `positions_max`
  /// bounds sequences.
  Stages(Runtime<Cuda>& runtime, const Weights<Cuda>& weights, const cuda::KvLayout& layout, void* pool,
         std::int32_t positions_max);

  /// Makes room for steps of that many rows, sampled rows and pages. True where memory moved, so that
  /// recorded work must not run again.
  bool reserve(int rows, int sampled, std::int64_t pages);
  /// Writes the rows of the next step and as many dead rows as fill up to `bucket` decodes; 0 for none.
  /// `rows` is not needed afterwards.
  void prepare(const StepRows& rows, int bucket);
  /// Sends what `prepare` wrote.
  void send(cuda::Stream stream) const;
  int layers() const { return weights_->shape.layers; }
  int rows() const { return rows_; }
  int sampled_rows() const { return sampled_; }
  /// Brings the tokens back.
  void fetch(cuda::Stream stream) const;
  /// Greedy tokens, fetched.
  std::span<const std::int32_t> sampled() const;
  /// Logits of sampled row `i`; waits for `stream`.
  std::span<const float> logits(int i, cuda::Stream stream) const;

  /// Token embeddings into the residual stream.
  void embed(CudaQueue& queue) const;
  /// What the layer before left to add, and RMSNorm before attention.
  void attention_norm(CudaQueue& queue, int layer) const;
  void qkv_product(CudaQueue& queue, int layer) const;
  /// Adds the bias, rotates Q and K; K and V go into the pool.
  void rope(CudaQueue& queue, int layer) const;
  void attention(CudaQueue& queue, int layer) const;
  /// Attention output, which the next norm adds to the residual stream.
  void output_product(CudaQueue& queue, int layer) const;
  void ffn_norm(CudaQueue& queue, int layer) const;
  /// Gate and up, and silu(gate) * up.
  void gate_up_product(CudaQueue& queue, int layer) const;
  /// Feed-forward output, which the next norm adds to the residual stream.
  void down_product(CudaQueue& queue, int layer) const;
  /// RMSNorm of the sampled rows.
  void head_norm(CudaQueue& queue) const;
  void head_product(CudaQueue& queue) const;
  /// Greedy tokens.
  void sample(CudaQueue& queue) const;

 private:
  struct Activations {
    CudaMemory residual, normed, qkv, query, attended, gate_up, ffn, delta;
    int rows_max = 0;
  };
  void make_activations(int rows);
  void make_outputs(int sampled);
  void write_rows(const StepRows& rows, int bucket);
  void norm(CudaQueue& queue, const float* weight, bool has_delta, const std::int32_t* row_index,
            int rows) const;
  cuda::AttentionArgs attention_args(int layer) const;
  void plan_attention(const StepRows& rows);
  int group() const { return weights_->shape.heads / weights_->shape.kv_heads; }

  Runtime<Cuda>* runtime_;
  const Weights<Cuda>* weights_;
  cuda::KvLayout layout_;
  void* pool_;
  std::int32_t positions_max_;
  CudaProducts products_;
  ElementType activation_;
  CudaMemory cosine_, sine_;
  Activations buffers_;
  CudaMemory logits_, tokens_, host_tokens_, host_logits_, partial_;
  int sampled_max_ = 0;
  std::optional<StepMemory> step_;
  int rows_ = 0;
  int sequences_ = 0;
  int sampled_ = 0;
  /// Sampled rows that somebody asked for: without the dead ones that fill a bucket.
  int wanted_ = 0;
  std::int64_t pages_ = 0;
  /// Whether tensor cores take attention; else the plain kernel takes all of it.
  bool is_fast_ = false;
  /// The first sequence that decodes; those before it are chunks.
  int first_decode_ = 0;
  int prefill_items_ = 0;
  /// Blocks for decode attention: what a batch of so many sequences may need at most.
  int decode_items_ = 0;
};

}  // namespace foretoken

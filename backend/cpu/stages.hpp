#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/runtime.hpp"
#include "backend/cpu/weights.hpp"
#include "backend/step_rows.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken {

/// The stages of a step on this machine's processors: `prepare` by one thread, then each stage by all members
/// of a team, who are the queue.
template <>
class Stages<Cpu> {
 public:
  /// Runs `weights`, which must outlive it, with keys and values of `layout` in `pool`. `positions_max`
  /// bounds sequences.
  Stages(Runtime<Cpu>& runtime, const Weights<Cpu>& weights, const cpu::KvLayout& layout, void* pool,
         std::int32_t positions_max);

  /// Makes room for steps of that many rows and sampled rows, so that none has to.
  void reserve(int rows, int sampled);
  /// Takes over the rows of the next step, which must stay unchanged until it is done; grows buffers where
  /// they are too small and deals out attention over the team.
  void prepare(const StepRows& rows);
  int layers() const { return weights_->shape.layers; }
  int rows() const { return rows_->rows(); }
  int sampled_rows() const { return static_cast<int>(rows_->sampled.size()); }
  /// Greedy tokens, one per sampled row in their order; valid until the next step.
  std::span<const std::int32_t> sampled() const;
  /// Logits of sampled row `i`.
  std::span<const float> logits(int i) const;

  /// Token embeddings into the residual stream.
  void embed(const cpu::Team& team) const;
  /// RMSNorm before attention; the bias of Q, K and V goes where their product will add to it.
  void attention_norm(const cpu::Team& team, int layer) const;
  void qkv_product(const cpu::Team& team, int layer) const;
  /// Rotates Q and K; K and V go into the pool.
  void rope(const cpu::Team& team, int layer) const;
  void attention(const cpu::Team& team, int layer) const;
  /// Attention output into the residual stream.
  void output_product(const cpu::Team& team, int layer) const;
  /// RMSNorm before the feed-forward block.
  void ffn_norm(const cpu::Team& team, int layer) const;
  /// Gate and up, and silu(gate) * up.
  void gate_up_product(const cpu::Team& team, int layer) const;
  /// Feed-forward output into the residual stream.
  void down_product(const cpu::Team& team, int layer) const;
  /// RMSNorm of the sampled rows.
  void head_norm(const cpu::Team& team) const;
  void head_product(const cpu::Team& team) const;
  /// Greedy tokens.
  void sample(const cpu::Team& team);

 private:
  struct Activations {
    cpu::Buffer residual, normed, qkv, query, attended, ffn;
    std::int64_t hidden_stride = 0, qkv_stride = 0, query_stride = 0, ffn_stride = 0;
    int rows_max = 0;
  };
  const LayerWeights<Cpu>& layer_weights(int layer) const {
    return weights_->layers[static_cast<std::size_t>(layer)];
  }
  void norm(const float* weight, const std::int32_t* row_index, int rows, cpu::Share share) const;
  void spread_bias(const float* bias, cpu::Share share) const;
  void product(const cpu::PackedMatrix& matrix, const cpu::Buffer& x, std::int64_t x_stride,
               const cpu::Buffer& y, std::int64_t y_stride, cpu::Epilogue epilogue, int rows,
               cpu::Share share) const;

  Runtime<Cpu>* runtime_;
  const Weights<Cpu>* weights_;
  const cpu::Kernels* kernels_;
  cpu::KvLayout layout_;
  void* pool_;
  std::int32_t positions_max_;
  /// Type in which products and attention read activations.
  ElementType input_type_;
  ElementType query_type_;
  cpu::Buffer cosine_, sine_;
  Activations buffers_;
  cpu::Buffer logits_;
  int sampled_max_ = 0;
  std::vector<std::int32_t> next_tokens_;
  const StepRows* rows_ = nullptr;
  cpu::AttentionPlan plan_;
  cpu::AttentionBatch batch_;
};

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backend/runtime.hpp"
#include "backend/weights.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken {

/// The rows of one step: new tokens of all sequences, those of one sequence side by side. Vectors keep their
/// capacity from step to step.
struct StepRows {
  /// [rows]: token ids, their positions in the sequence, and where keys and values go (block * block_tokens +
  /// offset, or negative for nowhere).
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> kv_slots;
  /// [sequences + 1]: first row of each sequence; [sequences]: tokens cached once the step is done.
  std::vector<std::int32_t> row_begin{0};
  std::vector<std::int32_t> context;
  /// [sequences + 1] into `pages`.
  std::vector<std::int32_t> page_begin{0};
  std::vector<std::int32_t> pages;
  /// Rows that go through the LM head.
  std::vector<std::int32_t> sampled;

  int rows() const { return static_cast<int>(tokens.size()); }
  int sequences() const { return static_cast<int>(context.size()); }
  /// Ends the sequence whose rows and pages were appended last.
  void close_sequence(std::int32_t context_after) {
    context.push_back(context_after);
    row_begin.push_back(rows());
    page_begin.push_back(static_cast<std::int32_t>(pages.size()));
  }
  /// Forgets all rows and keeps the capacity.
  void clear();
};

/// A Llama-family decoder on one device. A step is `prepare` by one thread, then `forward` by all members of
/// a team, then `sampled`.
template <class Device>
class Transformer;

/// The decoder on this machine's processors.
template <>
class Transformer<Cpu> {
 public:
  /// Runs `weights`, which must outlive it, with keys and values of `layout` in `pool`. `positions_max`
  /// bounds sequences.
  Transformer(Runtime<Cpu>& runtime, const Weights& weights, const cpu::KvLayout& layout, void* pool,
              std::int32_t positions_max);

  /// Makes room for steps of that many rows and sampled rows, so that none has to.
  void reserve(int rows, int sampled) { make_room(rows, sampled); }
  /// Takes over the rows of the next step, which must stay unchanged until it is done; grows buffers where
  /// they are too small and deals out attention over the team.
  void prepare(const StepRows& rows);
  /// The forward pass of the prepared step; every member of the team calls it.
  void forward(const cpu::Team& team);
  /// The products of the prepared step alone, on whatever the buffers hold: what a step is measured against.
  void forward_products(const cpu::Team& team);
  /// Greedy tokens, one per sampled row in their order; valid until the next step.
  std::span<const std::int32_t> sampled() const;
  /// Logits of sampled row `i`.
  std::span<const float> logits(int i) const;

 private:
  struct Activations {
    cpu::Buffer residual, normed, qkv, query, attended, ffn;
    std::int64_t hidden_stride = 0, qkv_stride = 0, query_stride = 0, ffn_stride = 0;
    int rows_max = 0;
  };
  void make_room(int rows, int sampled);
  void embed(cpu::Share share) const;
  void norm(const float* weight, const std::int32_t* row_index, int rows, cpu::Share share) const;
  void spread_bias(const float* bias, cpu::Share share) const;
  void product(const cpu::PackedMatrix& matrix, const cpu::Buffer& x, std::int64_t x_stride,
               const cpu::Buffer& y, std::int64_t y_stride, cpu::Epilogue epilogue, int rows,
               cpu::Share share) const;
  void rope(int layer, cpu::Share share) const;
  void attend(int layer, cpu::Share share) const;
  void layer(const cpu::Team& team, int number) const;
  void head(const cpu::Team& team);

  Runtime<Cpu>* runtime_;
  const Weights* weights_;
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

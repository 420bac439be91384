#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "backend/cpu/model.hpp"
#include "backend/cpu/stages.hpp"
#include "backend/kv_tables.hpp"
#include "backend/transformer.hpp"

namespace foretoken::testing {

/// A shape small enough for hundreds of forward passes a second, odd enough to find edges.
inline ModelShape tiny_shape() {
  ModelShape shape;
  shape.name = "test";
  shape.hidden = 96;
  shape.layers = 2;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 32;
  shape.ffn = 112;
  shape.vocab = 131;
  shape.max_position = 512;
  return shape;
}

/// A transformer with a pool of its own, fed sequence by sequence: what a scheduler and a live executor do,
/// by hand.
class HandDriven {
 public:
  HandDriven(Runtime<Cpu>& runtime, const Weights<Cpu>& weights, ElementType kv_type, int block_tokens = 16,
             std::int64_t blocks = 64)
      : runtime_(runtime),
        layout_(kv_layout(weights.shape, kv_type, block_tokens)),
        tables_(block_tokens, blocks, 0),
        pool_(runtime.allocate(static_cast<std::size_t>(blocks + 1) * layout_.block_bytes(), "the pool")),
        transformer_(runtime, weights, layout_, pool_.data(), weights.shape.max_position) {}

  KvTables& tables() { return tables_; }
  /// Fills all keys and values with what reads as NaN.
  void poison() { std::memset(pool_.data(), 0xff, pool_.size()); }

  /// Adds `tokens` at positions `context` and up of the sequence in `slot`; its last row is sampled.
  void add(Slot slot, std::span<const std::int32_t> tokens, std::int32_t context) {
    const int block_tokens = layout_.block_tokens;
    const std::int32_t after = context + static_cast<std::int32_t>(tokens.size());
    tables_.grow(slot, after);
    const std::span<const std::int32_t> table = tables_.table(slot);
    for (std::int32_t position = context; position < after; ++position) {
      rows_.tokens.push_back(tokens[static_cast<std::size_t>(position - context)]);
      rows_.positions.push_back(position);
      rows_.kv_slots.push_back(std::int64_t{table[static_cast<std::size_t>(position / block_tokens)]} *
                                   block_tokens +
                               position % block_tokens);
    }
    rows_.pages.insert(rows_.pages.end(), table.begin(),
                       table.begin() + (after + block_tokens - 1) / block_tokens);
    rows_.close_sequence(after);
    rows_.sampled.push_back(rows_.rows() - 1);
  }

  /// Samples another row of the rows added so far.
  void sample(int row) { rows_.sampled.push_back(row); }

  /// Runs what was added and returns the logits of the sampled rows.
  std::vector<std::vector<float>> run() {
    transformer_.stages().prepare(rows_);
    const auto step = [this](const cpu::Team& team) { transformer_.forward(team); };
    runtime_.run(step);
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < rows_.sampled.size(); ++i) {
      const std::span<const float> row = transformer_.stages().logits(static_cast<int>(i));
      logits.emplace_back(row.begin(), row.end());
    }
    const std::span<const std::int32_t> sampled = transformer_.stages().sampled();
    tokens_.assign(sampled.begin(), sampled.end());
    rows_.clear();
    return logits;
  }

  /// Greedy tokens of the last run.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

 private:
  Runtime<Cpu>& runtime_;
  cpu::KvLayout layout_;
  KvTables tables_;
  cpu::Buffer pool_;
  Transformer<Cpu> transformer_;
  StepRows rows_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace foretoken::testing

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backend/kv_cache.hpp"
#include "backend/transformer.hpp"
#include "backend/weights.hpp"

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
  HandDriven(Runtime<Cpu>& runtime, const Weights& weights, ElementType kv_type, int block_tokens = 16,
             std::int64_t blocks = 64)
      : runtime_(runtime),
        cache_(runtime, layout(weights.shape, kv_type, block_tokens), blocks, 0),
        transformer_(runtime, weights, cache_.layout(), cache_.pool(), weights.shape.max_position) {}

  KvCache& cache() { return cache_; }

  /// Adds `tokens` at positions `context` and up of the sequence in `slot`; its last row is sampled.
  void add(Slot slot, std::span<const std::int32_t> tokens, std::int32_t context) {
    const int block_tokens = cache_.layout().block_tokens;
    const std::int32_t after = context + static_cast<std::int32_t>(tokens.size());
    cache_.grow(slot, after);
    const std::span<const std::int32_t> table = cache_.table(slot);
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
    transformer_.prepare(rows_);
    const auto step = [this](const cpu::Team& team) { transformer_.forward(team); };
    runtime_.run(step);
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < rows_.sampled.size(); ++i) {
      const std::span<const float> row = transformer_.logits(static_cast<int>(i));
      logits.emplace_back(row.begin(), row.end());
    }
    tokens_.assign(transformer_.sampled().begin(), transformer_.sampled().end());
    rows_.clear();
    return logits;
  }

  /// Greedy tokens of the last run.
  const std::vector<std::int32_t>& tokens() const { return tokens_; }

 private:
  static cpu::KvLayout layout(const ModelShape& shape, ElementType type, int block_tokens) {
    cpu::KvLayout result;
    result.type = type;
    result.layers = shape.layers;
    result.kv_heads = shape.kv_heads;
    result.block_tokens = block_tokens;
    result.head_dim = shape.head_dim;
    return result;
  }

  Runtime<Cpu>& runtime_;
  KvCache cache_;
  Transformer<Cpu> transformer_;
  StepRows rows_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace foretoken::testing

#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace foretoken {

/// One prefill chunk of a step.
struct ChunkFeatures {
  std::int32_t tokens = 0;   ///< New tokens that the chunk computes, at least 1.
  std::int32_t context = 0;  ///< Tokens of the sequence already in the KV cache before the step.
  friend bool operator==(const ChunkFeatures&, const ChunkFeatures&) = default;
};

/// All that a step's price depends on. Contexts are tokens in the KV cache before the step, so a decode
/// reads its context and its own token. A decode row computes one token; rows of one token may be given
/// either way.
struct StepFeatures {
  std::span<const ChunkFeatures> chunks;  ///< Prefill chunks; the view lives as long as its owner.
  std::int32_t decode_count = 0;          ///< Live sequences that decode one token.
  std::int64_t decode_context_sum = 0;    ///< Sum of their contexts.
  std::int32_t decode_context_min = 0;    ///< Shortest of their contexts.
  std::int32_t decode_context_max = 0;    ///< Longest of their contexts.
  std::int32_t sampled_rows = 0;          ///< Rows that pass the LM head, dead rows included.
  std::int64_t padded_tokens = 0;         ///< Prompt tokens computed only to fill chunks up to the longest.
  std::int32_t padded_rows = 0;           ///< Finished rows that decode along; not in `padded_tokens`.
};

/// Tokens that pass the model's layers in a step, padding and dead rows included.
[[nodiscard]] inline std::int64_t computed_tokens(const StepFeatures& features) {
  std::int64_t tokens = features.decode_count + features.padded_tokens + features.padded_rows;
  for (const ChunkFeatures& chunk : features.chunks) tokens += chunk.tokens;
  return tokens;
}

/// True when the step only decodes, so that its repeat differs by one context token per sequence.
[[nodiscard]] inline bool is_pure_decode(const StepFeatures& features) {
  return features.chunks.empty() && features.decode_count > 0 && features.padded_tokens == 0;
}

/// The same decode step `repeats` steps later: every context has grown by that many tokens.
[[nodiscard]] inline StepFeatures advanced(StepFeatures features, std::int64_t repeats) {
  features.decode_context_sum += repeats * features.decode_count;
  features.decode_context_min += static_cast<std::int32_t>(repeats);
  features.decode_context_max += static_cast<std::int32_t>(repeats);
  return features;
}

/// StepFeatures that own their chunks: what calibration measures and a profile keeps.
struct StepShape {
  std::vector<ChunkFeatures> chunks;    ///< As in StepFeatures, like every other field.
  std::int32_t decode_count = 0;        ///< Live sequences that decode one token.
  std::int64_t decode_context_sum = 0;  ///< Sum of their contexts.
  std::int32_t decode_context_min = 0;  ///< Shortest of their contexts.
  std::int32_t decode_context_max = 0;  ///< Longest of their contexts.
  std::int32_t sampled_rows = 0;        ///< Rows that pass the LM head, dead rows included.
  std::int64_t padded_tokens = 0;       ///< Prompt tokens computed only as padding.
  std::int32_t padded_rows = 0;         ///< Finished rows that decode along.
  friend bool operator==(const StepShape&, const StepShape&) = default;

  /// A view for pricing; lives as long as this shape and its chunks stay unchanged.
  [[nodiscard]] StepFeatures features() const {
    return {chunks,       decode_count,  decode_context_sum, decode_context_min, decode_context_max,
            sampled_rows, padded_tokens, padded_rows};
  }
};

/// A copy that owns its chunks.
[[nodiscard]] inline StepShape to_shape(const StepFeatures& features) {
  return {{features.chunks.begin(), features.chunks.end()},
          features.decode_count,
          features.decode_context_sum,
          features.decode_context_min,
          features.decode_context_max,
          features.sampled_rows,
          features.padded_tokens,
          features.padded_rows};
}

}  // namespace foretoken

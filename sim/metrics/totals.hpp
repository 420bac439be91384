#pragma once
#include <array>
#include <cstdint>

#include "sim/core/step.hpp"
#include "sim/core/time.hpp"
#include "sim/metrics/wide.hpp"

namespace foretoken {

/// Counts over requests; they add up over any partition of the requests.
struct RequestTotals {
  std::int64_t offered = 0;
  std::int64_t finished = 0;
  std::int64_t refused_context = 0;  ///< At the door: longer than the context.
  std::int64_t refused_memory = 0;   ///< At the door: never fits the KV pool.
  std::int64_t cancelled = 0;        ///< The client left.
  std::int64_t unfinished = 0;       ///< Still alive when the run ended (censored).
  std::int64_t truncated = 0;        ///< Finished with fewer tokens than the client wanted.
  std::int64_t good = 0;             ///< Finished and within every per-request threshold.
  std::int64_t preemptions = 0;
  std::int64_t swaps = 0;                   ///< Of the preemptions, those that moved blocks to the host.
  std::int64_t prompt_tokens = 0;           ///< Of all offered requests.
  std::int64_t prompt_tokens_admitted = 0;  ///< Of those that became resident, once each.
  std::int64_t prefix_hit_tokens = 0;       ///< Found in the prefix cache at the first admission.
  std::int64_t refound_tokens = 0;          ///< Found there after a preemption.
  std::int64_t recomputed_tokens = 0;       ///< Computed again after a preemption.
  std::int64_t delivered_tokens = 0;        ///< Reached a client; recomputed tokens are never among them.
  std::int64_t good_tokens = 0;             ///< Of those, tokens of good requests.
  /// Where the time of finished requests went, picoseconds; the five add up to arrival-to-end.
  Wide queue_ps = 0;
  Wide prefill_ps = 0;
  Wide decode_ps = 0;
  Wide preempted_ps = 0;
  Wide stalled_ps = 0;

  std::int64_t refused() const { return refused_context + refused_memory; }
  /// Adds the counts of other requests.
  void add(const RequestTotals& other);
};

/// Sums over steps from which FLOPs and bytes follow: `flops = computed_tokens * f1 + sampled_rows * f2 +
/// attention_pairs * f3`, `bytes = weight_passes * b1 + context_tokens_read * b2 + computed_tokens * b3`.
/// Dead and padded rows are in them, since they cost as much as live ones; the useful share is in
/// `new_tokens`.
struct WorkTotals {
  std::int64_t weight_passes = 0;        ///< Steps.
  std::int64_t new_tokens = 0;           ///< Tokens of requests, recomputed ones included.
  std::int64_t computed_tokens = 0;      ///< New tokens, padding and dead rows.
  std::int64_t sampled_rows = 0;         ///< Rows through the LM head.
  std::int64_t attention_pairs = 0;      ///< Query-key pairs, causal.
  std::int64_t context_tokens_read = 0;  ///< Cached tokens that the steps read, each chunk's own included.
  std::int64_t padding_tokens = 0;       ///< Computed because prompts are padded.
  std::int64_t dead_tokens = 0;          ///< Computed by sequences that had ended and wait for their batch.
  std::int64_t wasted_tokens = 0;        ///< Computed for sequences whose end was seen one step late.
  std::int64_t swapped_blocks_out = 0;
  std::int64_t swapped_blocks_in = 0;
  void add(const WorkTotals& other);
  friend bool operator==(const WorkTotals&, const WorkTotals&) = default;
};

/// How long each reason left requests out of steps.
struct LimitTotals {
  std::array<std::int64_t, kLeftOutReasons> steps{};    ///< Steps that left somebody out for the reason.
  std::array<std::int64_t, kLeftOutReasons> time_ps{};  ///< Their durations.
  std::array<Wide, kLeftOutReasons> request_ps{};       ///< Durations times the number left out.
};

/// Time integrals and peaks of the engine's state. Integrals are of values times picoseconds; memory is
/// sampled at the end of each step record and weighted with the record's duration.
struct StateTotals {
  Wide in_system_ps = 0;  ///< Requests that arrived and have not ended (Little's law).
  Wide life_ps =
      0;  ///< The same from the other side: end minus arrival, censored lives up to the end of the run.
  Wide resident_ps = 0;
  Wide kv_held_ps = 0;       ///< Blocks that sequences hold.
  Wide kv_reserved_ps = 0;   ///< Of those, blocks without a token.
  Wide kv_slack_ps = 0;      ///< Tokens of room in touched blocks that hold none (internal fragmentation).
  Wide kv_cut_off_ps = 0;    ///< Free blocks outside the largest free range (external fragmentation).
  std::int64_t busy_ps = 0;  ///< Steps running.
  std::int64_t kv_blocks_total = 0;
  std::int64_t kv_held_max = 0;
  Time kv_held_max_at{};
  std::int64_t resident_max = 0;
  std::int64_t waiting_max = 0;
};

}  // namespace foretoken

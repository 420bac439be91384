#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/core/request.hpp"
#include "sim/core/time.hpp"

namespace foretoken {

/// Tokens of one sequence that is catching up: a prompt's chunk, a recomputation, or a single token out of
/// lock-step.
struct Chunk {
  Slot slot{};
  Handle request{};
  std::int32_t tokens = 0;
  /// Tokens already in the KV cache.
  std::int32_t context = 0;
  /// The chunk reaches the last known token, so that the step emits one (none when the request asks for
  /// none).
  bool sampled = false;
};

/// One decoding sequence: one new token on top of `context`.
struct DecodeRow {
  Slot slot{};
  std::int32_t context = 0;
};

/// A request becomes resident, for the first time or again.
struct Admission {
  Slot slot{};
  Handle request{};
  /// What was asked; lives as long as its handle.
  const Request* facts = nullptr;
  /// Prompt plus the tokens already emitted.
  std::int32_t known_tokens = 0;
  /// Of those, the ones already in the KV cache: a prefix hit, or everything after a swap.
  std::int32_t cached_tokens = 0;
  bool swapped_in = false;
  /// Who it is for good: handles are reused, and a plan made ahead may outlive what `facts` points to.
  RequestId id{};
};

/// A sequence gives up its slot without having ended.
struct Eviction {
  Slot slot{};
  Handle request{};
  /// Tokens whose KV entries are lost (recompute) or moved (swap).
  std::int32_t context_tokens = 0;
  bool swapped = false;
};

/// Where a block lives.
enum class Tier : std::uint8_t { device, host };

/// Blocks of one sequence that move between tiers, before the step's own work.
struct Copy {
  Slot slot{};
  Handle request{};
  Tier from{};
  Tier to{};
  std::int32_t blocks = 0;
};

/// A sequence enters or leaves the set that decodes in lock-step. `entered` rows have `context` tokens once
/// the plan's step is done.
struct LockStepChange {
  Slot slot{};
  Handle request{};
  std::int32_t context = 0;
  bool entered = false;
};

/// Why a request got no token in a step.
enum class LeftOut : std::uint8_t {
  token_budget,       ///< The step's tokens are used up.
  sequence_cap,       ///< Every slot is taken.
  kv_blocks,          ///< Not enough free blocks.
  join_rule,          ///< The engine admits only when empty, or waits for N or a timeout.
  preemption_freeze,  ///< Somebody was preempted in this step.
  swapped_first,      ///< Swapped sequences come back before anybody is admitted.
  head_of_line,       ///< Somebody ahead does not fit.
  prefill_exclusive,  ///< A decode waits while a prompt runs alone.
  transfer,           ///< Its blocks are still moving.
  evicted_this_step,  ///< It gave up its slot in this very step.
  count_              ///< Number of reasons.
};
inline constexpr std::size_t kLeftOutReasons = static_cast<std::size_t>(LeftOut::count_);

/// One batch, as data. Views live until the plan after the next one is made.
struct StepPlan {
  /// Counts the plans of a run, from 0.
  std::uint64_t number = 0;
  std::span<const Chunk> chunks;
  /// Decodes that advance in lock-step, as aggregates: number of rows, and sum, least and greatest of their
  /// contexts.
  std::int32_t decode_count = 0;
  std::int64_t decode_context_sum = 0;
  std::int32_t decode_context_min = 0;
  std::int32_t decode_context_max = 0;
  /// The same rows one by one, in order of admission; only when the scheduler was asked for columns.
  std::span<const DecodeRow> decodes;
  /// Tokens of all chunks plus one per decode; padding not counted.
  std::int64_t new_tokens = 0;
  /// Rows that go through the LM head.
  std::int32_t sampled_rows = 0;
  /// Ended sequences that decode along until their batch ends, and the sum of their contexts.
  std::int32_t dead_rows = 0;
  std::int64_t dead_context_sum = 0;
  /// Tokens computed only because prompts are padded to the longest chunk of the step.
  std::int64_t padding_tokens = 0;
  std::span<const Admission> admissions;
  std::span<const Eviction> evictions;
  std::span<const Copy> copies;
  std::span<const LockStepChange> lock_step_changes;
  /// How many requests were left out, by reason, waiting and resident ones alike.
  std::array<std::int32_t, kLeftOutReasons> left_out{};
  /// How many times the step may be repeated before the scheduler has something new to decide, ends and
  /// arrivals aside. 1 unless it is a pure decode step.
  std::int64_t repeats_max = 1;
  /// Decode rows whose sequence ended after this plan was made (depth 1): their slot computes, but emits
  /// nothing.
  std::int32_t wasted_rows = 0;
  /// Lock-step position after the step; repeats add one each.
  std::int64_t tick = 0;
};

/// Why there is nothing to run.
enum class IdleReason : std::uint8_t { no_work, join_rule, in_flight, transfer };

/// The scheduler's answer: a step, or a reason to idle and when to ask again at the latest.
struct Decision {
  /// Points into the scheduler and lives as its views do. Null when there is nothing to do at all; a plan
  /// without new tokens is not a step, it only says what else was decided (evictions, copies).
  StepPlan* plan = nullptr;
  Time idle_until = kNever;
  IdleReason idle_reason = IdleReason::no_work;

  bool runs() const { return plan != nullptr && plan->new_tokens > 0; }
};

/// KV memory at one moment, in blocks and tokens.
struct KvUse {
  std::int64_t blocks_total = 0;
  /// Held by sequences; shared blocks count once.
  std::int64_t blocks_held = 0;
  /// Of those, blocks that have at least one token written; the rest is reserved but unused.
  std::int64_t blocks_touched = 0;
  /// Tokens in the KV cache over all resident sequences; shared ones count for each.
  std::int64_t context_tokens = 0;
  std::int64_t host_blocks_held = 0;
  /// Contiguous placement: the largest free range; otherwise the free blocks.
  std::int64_t largest_free_range = 0;
};

}  // namespace foretoken

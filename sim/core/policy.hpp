#pragma once
#include <cstdint>

#include "sim/core/time.hpp"

namespace foretoken {

/// ORDER: who is first among the waiting. Ties go to the earlier arrival.
enum class Order : std::uint8_t { fcfs, priority, shortest_prompt, shortest_predicted };
/// ADMIT, memory: what must fit into free blocks before a request may become resident: its next chunk; all
/// its known tokens; prompt plus max_new_tokens; the longest sequence the engine serves.
enum class Reserve : std::uint8_t { chunk, known, prompt_and_max, max_len };
/// PLACE: what is taken at admission: the blocks of the chunk, of all known tokens, or everything reserved
/// (nothing grows later).
enum class Take : std::uint8_t { chunk, known, reserved };
/// ADMIT, joining: at any step; only into an empty engine; into an empty engine once N wait or the oldest has
/// waited long enough.
enum class Join : std::uint8_t { any, when_empty, count_or_timeout };
/// ADMIT, head of line: stop at the first request that does not fit, or let a bounded number overtake it.
enum class HeadOfLine : std::uint8_t { stop, bounded_skip };
/// FORM: the phases of a step. `list_order`: residents in the order of admission, then the waiting; the
/// walk ends at a resident that had to yield for itself (vLLM V1).
/// `decodes_first`: decodes, unfinished prompts, then the waiting (Sarathi, Orca). `prefill_exclusive`:
/// prompts run alone, unfinished ones before new ones; only when there is none do the decodes run (vLLM V0).
enum class Form : std::uint8_t { list_order, decodes_first, prefill_exclusive };
/// PLACE: blocks that grow on demand anywhere, or one contiguous range per sequence.
enum class Place : std::uint8_t { paged, contiguous };
/// PREEMPT: who yields.
enum class Victim : std::uint8_t { last_admitted, lowest_priority };
/// PREEMPT: how. Recompute keeps the tokens already emitted; swap moves blocks to the host pool and falls
/// back to recompute when that is full.
enum class PreemptMode : std::uint8_t { none, recompute, swap };
/// When the client sees tokens.
enum class Delivery : std::uint8_t { streamed, request_end, batch_end };

/// The answers in the slots ORDER, ADMIT, FORM, PLACE and PREEMPT: a known engine is a row of these values,
/// not a subclass.
struct Policy {
  Order order = Order::fcfs;

  std::int32_t sequences_max = 256;
  Reserve reserve = Reserve::known;
  Take take = Take::chunk;
  /// Fraction of the usable blocks that an admission must leave free.
  double watermark = 0.0;
  /// The watermark binds only while something is resident (vLLM V1).
  bool watermark_only_when_busy = false;
  Join join = Join::any;
  /// For count_or_timeout: N, and the longest wait of the oldest.
  std::int32_t join_count = 1;
  Duration join_timeout{};
  HeadOfLine head_of_line = HeadOfLine::stop;
  /// How many later requests may be admitted before a request that does not fit, and the age at which nobody
  /// may.
  std::int32_t overtakes_max = 0;
  Duration overtake_age_max = kForever;
  /// No admission in a step that preempted.
  bool freeze_after_preemption = true;
  /// Swapped sequences come back before anybody is admitted.
  bool swapped_first = true;

  Form form = Form::list_order;
  /// Tokens in one step; 0: no limit.
  std::int32_t batch_tokens_max = 2048;
  /// Whether a prompt may be cut to the budget.
  bool chunked = true;
  /// Hard cap on one request's tokens in one step; 0: none.
  std::int32_t chunk_tokens_max = 0;
  /// Prompts are padded to the longest of their batch, and finished sequences stay as dead rows until the
  /// last one ends.
  bool padded = false;

  Place place = Place::paged;
  std::int32_t block_tokens = 16;
  bool prefix_cache = false;
  /// Blocks that hold no sequence (vLLM V1 keeps one).
  std::int32_t null_blocks = 0;
  /// Blocks are given back when the last sequence of the batch ends.
  bool release_at_batch_end = false;

  Victim victim = Victim::last_admitted;
  PreemptMode preempt = PreemptMode::recompute;

  Delivery delivery = Delivery::streamed;
  /// 1: plan k+1 is made when k starts (asynchronous scheduling).
  std::int32_t depth = 0;
  /// At depth 1, blocks given up while a step in flight may still touch them come back when that step has
  /// ended.
  bool deferred_frees = true;
};

/// What the device offers, in tokens and blocks.
struct Capacity {
  /// Blocks of the device's KV pool, the null blocks included.
  std::int64_t kv_blocks = 0;
  /// Blocks of the host pool for swap.
  std::int64_t host_blocks = 0;
  /// Longest sequence, prompt and answer together.
  std::int32_t model_tokens_max = 0;
  /// A property of the host link: transfers run beside the steps instead of before the step that asked for
  /// them.
  bool transfers_overlap = false;
};

}  // namespace foretoken

#include "sim/metrics/totals.hpp"

namespace foretoken {

void RequestTotals::add(const RequestTotals& other) {
  offered += other.offered;
  finished += other.finished;
  refused_context += other.refused_context;
  refused_memory += other.refused_memory;
  cancelled += other.cancelled;
  unfinished += other.unfinished;
  truncated += other.truncated;
  good += other.good;
  preemptions += other.preemptions;
  swaps += other.swaps;
  prompt_tokens += other.prompt_tokens;
  prompt_tokens_admitted += other.prompt_tokens_admitted;
  prefix_hit_tokens += other.prefix_hit_tokens;
  refound_tokens += other.refound_tokens;
  recomputed_tokens += other.recomputed_tokens;
  delivered_tokens += other.delivered_tokens;
  good_tokens += other.good_tokens;
  queue_ps += other.queue_ps;
  prefill_ps += other.prefill_ps;
  decode_ps += other.decode_ps;
  preempted_ps += other.preempted_ps;
  stalled_ps += other.stalled_ps;
}

void WorkTotals::add(const WorkTotals& other) {
  weight_passes += other.weight_passes;
  new_tokens += other.new_tokens;
  computed_tokens += other.computed_tokens;
  sampled_rows += other.sampled_rows;
  attention_pairs += other.attention_pairs;
  context_tokens_read += other.context_tokens_read;
  padding_tokens += other.padding_tokens;
  dead_tokens += other.dead_tokens;
  wasted_tokens += other.wasted_tokens;
  swapped_blocks_out += other.swapped_blocks_out;
  swapped_blocks_in += other.swapped_blocks_in;
}

}  // namespace foretoken

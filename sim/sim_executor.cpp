#include "sim/sim_executor.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {

StepFeatures features_of(const StepPlan& plan, std::vector<ChunkFeatures>& chunks) {
  chunks.clear();
  for (const Chunk& chunk : plan.chunks) chunks.push_back({chunk.tokens, chunk.context});
  StepFeatures features;
  features.chunks = chunks;
  features.decode_count = plan.decode_count;
  // Dead rows read their caches, too; theirs do not grow.
  features.decode_context_sum = plan.decode_context_sum + plan.dead_context_sum;
  features.decode_context_min = plan.decode_context_min;
  features.decode_context_max = plan.decode_context_max;
  features.sampled_rows = plan.sampled_rows + plan.dead_rows;
  features.padded_tokens = plan.padding_tokens;
  features.padded_rows = plan.dead_rows;
  return features;
}

Window SimExecutor::launch(const StepPlan& plan, Time begin) {
  const StepFeatures features = features_of(plan, chunks_);
  Window window;
  window.begin = begin;
  if (plan.repeats_max > 1 && plan.copies.empty()) {
    const DecodeWindow decode = cost_->decode_window(features);
    window.first = Duration{decode.first_ps};
    window.growth = Duration{decode.growth_ps};
    window.repeats_max = decode.repeats_valid;
    return window;
  }
  window.first = Duration{cost_->step_ps(features)};
  if (!transfers_overlap_)
    for (const Copy& copy : plan.copies) window.first += Duration{cost_->transfer().copy_ps(copy.blocks)};
  return window;
}

Time SimExecutor::complete(const StepPlan&, const Window& window) {
  FT_CHECK(false, "a simulated window knows its end");
  return window.begin;
}

Time SimExecutor::transfer_end(const Copy& copy, Time begin) {
  if (!transfers_overlap_) return begin;
  // One link: transfers queue behind each other.
  link_free_ = std::max(begin, link_free_) + Duration{cost_->transfer().copy_ps(copy.blocks)};
  return link_free_;
}

}  // namespace foretoken

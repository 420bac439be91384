#include "backend/live_executor.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// The plan number of a resident that has not taken part in any.
constexpr std::uint64_t kNoPlan = ~std::uint64_t{0};

}  // namespace

LiveExecutor::LiveExecutor(DeviceModel& model, const WallClock& clock, const DecoderOptions& options)
    : clock_(&clock),
      options_(options),
      vocab_(model.shape().vocab),
      blocks_(options.block_tokens, options.kv_blocks, options.host_blocks),
      decoder_(model.decoder(options)) {}

void LiveExecutor::use_block_tables(std::function<std::span<const std::int32_t>(Slot)> tables) {
  tables_ = std::move(tables);
}

void LiveExecutor::set_output_sink(std::function<void(RequestId, std::span<const std::int32_t>)> sink) {
  sink_ = std::move(sink);
}

std::span<const std::int32_t> LiveExecutor::emitted(Handle handle) const {
  return sequences_[index(handle)].emitted;
}

LiveExecutor::Resident& LiveExecutor::resident(Slot slot) {
  if (index(slot) >= residents_.size()) residents_.resize(index(slot) + 1);
  return residents_[index(slot)];
}

void LiveExecutor::on_accept(Handle handle, const Offer& offer) {
  if (index(handle) >= sequences_.size()) sequences_.resize(index(handle) + 1);
  Sequence& sequence = sequences_[index(handle)];
  sequence.prompt.assign(offer.request, vocab_);
  sequence.emitted.clear();
  sequence.id = offer.request.id;
  sequence.output_tokens = offer.output_tokens;
  sequence.slot = kNoSlot;
}

void LiveExecutor::on_release(Handle handle) {
  Sequence& sequence = sequences_[index(handle)];
  if (sequence.slot != kNoSlot) vacate(sequence.slot);
  blocks_.forget(handle);
  if (!sink_) return;
  // At depth 1 a row may have run once more after its end.
  const std::size_t tokens =
      std::min(sequence.emitted.size(), static_cast<std::size_t>(sequence.output_tokens));
  sink_(sequence.id, std::span(sequence.emitted).first(tokens));
}

void LiveExecutor::vacate(Slot slot) {
  Resident& row = resident(slot);
  blocks_.release(slot);
  if (row.request != kNoHandle) sequences_[index(row.request)].slot = kNoSlot;
  row = {};
}

void LiveExecutor::leave(const StepPlan& plan) {
  for (const Eviction& eviction : plan.evictions) {
    FT_CHECK(resident(eviction.slot).request == eviction.request, index(eviction.slot),
             index(eviction.request));
    if (eviction.swapped)
      blocks_.swap_out(eviction.slot, eviction.request, eviction.context_tokens, work_.copies_out);
    vacate(eviction.slot);
  }
}

void LiveExecutor::enter(const StepPlan& plan) {
  for (const Admission& admission : plan.admissions) {
    Resident& row = resident(admission.slot);
    Sequence& sequence = sequences_[index(admission.request)];
    FT_CHECK(row.request == kNoHandle, index(admission.slot), index(row.request));
    const std::int32_t emitted = admission.known_tokens - sequence.prompt.tokens();
    FT_CHECK(emitted >= 0 && static_cast<std::size_t>(emitted) <= sequence.emitted.size(), emitted,
             sequence.emitted.size());
    sequence.emitted.resize(static_cast<std::size_t>(emitted));
    sequence.slot = admission.slot;
    row = {admission.request, admission.cached_tokens, kNoPlan};
    refresh_table(admission.slot, admission.cached_tokens);
    if (admission.swapped_in) blocks_.swap_in(admission.slot, admission.request, work_.copies_in);
  }
}

void LiveExecutor::refresh_table(Slot slot, std::int32_t tokens) {
  if (tables_) blocks_.use_external_table(slot, tables_(slot));
  blocks_.grow(slot, tokens);
}

std::int32_t LiveExecutor::known_token(const Sequence& sequence, std::int32_t position) const {
  const std::int32_t prompt = sequence.prompt.tokens();
  if (position < prompt) return sequence.prompt.token(position);
  const auto emitted = static_cast<std::size_t>(position - prompt);
  FT_CHECK(emitted < sequence.emitted.size(), position, prompt, sequence.emitted.size());
  return sequence.emitted[emitted];
}

void LiveExecutor::add_sequence(Slot slot, std::int32_t context, std::int32_t tokens) {
  Resident& row = resident(slot);
  FT_CHECK(row.request != kNoHandle && row.context == context, index(slot), row.context, context);
  FT_CHECK(context + tokens <= options_.tokens_max, context, tokens, options_.tokens_max);
  const Sequence& sequence = sequences_[index(row.request)];
  refresh_table(slot, context + tokens);
  const std::span<const std::int32_t> table = blocks_.table(slot);
  const std::int32_t block_tokens = options_.block_tokens;
  for (std::int32_t position = context; position < context + tokens; ++position) {
    work_.rows.tokens.push_back(known_token(sequence, position));
    work_.rows.positions.push_back(position);
    work_.rows.kv_slots.push_back(std::int64_t{table[static_cast<std::size_t>(position / block_tokens)]} *
                                      block_tokens +
                                  position % block_tokens);
  }
  row.context = context + tokens;
  const std::int32_t pages = (row.context + block_tokens - 1) / block_tokens;
  work_.rows.pages.insert(work_.rows.pages.end(), table.begin(), table.begin() + pages);
  work_.rows.close_sequence(row.context);
}

void LiveExecutor::add_chunk(const Chunk& chunk) {
  add_sequence(chunk.slot, chunk.context, chunk.tokens);
  if (!chunk.sampled) return;
  work_.rows.sampled.push_back(work_.rows.rows() - 1);
  sampled_.push_back({chunk.request});
}

void LiveExecutor::add_padding(std::int32_t tokens, std::int32_t context) {
  if (tokens == 0) return;
  for (std::int32_t position = context - tokens; position < context; ++position) {
    work_.rows.tokens.push_back(0);
    work_.rows.positions.push_back(position);
    work_.rows.kv_slots.push_back(-1);
  }
  const std::int32_t pages = (context + options_.block_tokens - 1) / options_.block_tokens;
  work_.rows.pages.insert(work_.rows.pages.end(), static_cast<std::size_t>(pages), blocks_.dummy_block());
  work_.rows.close_sequence(context);
}

void LiveExecutor::add_dead_row(std::span<const std::int32_t> table, std::int32_t context) {
  work_.rows.tokens.push_back(0);
  work_.rows.positions.push_back(context - 1);
  work_.rows.kv_slots.push_back(-1);
  const auto pages = static_cast<std::size_t>((context + options_.block_tokens - 1) / options_.block_tokens);
  const std::size_t own = std::min(pages, table.size());
  work_.rows.pages.insert(work_.rows.pages.end(), table.begin(),
                          table.begin() + static_cast<std::ptrdiff_t>(own));
  work_.rows.pages.insert(work_.rows.pages.end(), pages - own, blocks_.dummy_block());
  work_.rows.close_sequence(context);
  work_.rows.sampled.push_back(work_.rows.rows() - 1);
  sampled_.push_back({kNoHandle});
}

/// Ended sequences decode along: they read what they have, write nothing, and nobody looks at their tokens.
/// They are the residents that the plan leaves out.
void LiveExecutor::add_dead_rows(const StepPlan& plan) {
  std::int32_t left = plan.dead_rows;
  for (std::size_t slot = 0; slot < residents_.size() && left > 0; ++slot) {
    const Resident& row = residents_[slot];
    if (row.request == kNoHandle || row.last_plan == plan.number || row.context == 0) continue;
    add_dead_row(blocks_.table(Slot{static_cast<std::uint32_t>(slot)}), row.context);
    --left;
  }
  const auto context =
      static_cast<std::int32_t>(plan.dead_rows == 0 ? 0 : plan.dead_context_sum / plan.dead_rows);
  for (; left > 0; --left) add_dead_row({}, std::max(1, context));
}

void LiveExecutor::add_rows(const StepPlan& plan) {
  sampled_.clear();
  std::int32_t longest = 0;
  for (const Chunk& chunk : plan.chunks) longest = std::max(longest, chunk.tokens);
  std::int64_t padding = 0;
  for (const Chunk& chunk : plan.chunks) {
    add_chunk(chunk);
    resident(chunk.slot).last_plan = plan.number;
    if (plan.padding_tokens == 0) continue;
    add_padding(longest - chunk.tokens, std::min(chunk.context + longest, options_.tokens_max));
    padding += longest - chunk.tokens;
  }
  FT_CHECK(padding == plan.padding_tokens, padding, plan.padding_tokens);
  FT_CHECK(static_cast<std::int32_t>(plan.decodes.size()) == plan.decode_count, plan.decodes.size(),
           plan.decode_count);
  for (const DecodeRow& decode : plan.decodes) {
    add_sequence(decode.slot, decode.context, 1);
    work_.rows.sampled.push_back(work_.rows.rows() - 1);
    Resident& row = resident(decode.slot);
    row.last_plan = plan.number;
    sampled_.push_back({row.request});
  }
  add_dead_rows(plan);
}

Window LiveExecutor::launch(const StepPlan& plan, Time begin) {
  work_.clear();
  leave(plan);
  enter(plan);
  add_rows(plan);
  decoder_->launch(work_);
  Window window;
  window.begin = begin;
  window.end_known = false;
  return window;
}

Time LiveExecutor::complete(const StepPlan&, const Window&) {
  decoder_->finish();
  take_tokens();
  return clock_->now();
}

void LiveExecutor::take_tokens() {
  const std::span<const std::int32_t> tokens = decoder_->sampled();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (sampled_[i].request != kNoHandle) sequences_[index(sampled_[i].request)].emitted.push_back(tokens[i]);
}

Time LiveExecutor::transfer_end(const Copy& copy, Time begin) {
  FT_CHECK(false, "copies are part of the step", copy.blocks);
  return begin;
}

}  // namespace foretoken

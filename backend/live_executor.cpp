#include "backend/live_executor.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// The plan number of a resident that has not taken part in any.
constexpr std::uint64_t kNoPlan = ~std::uint64_t{0};

}  // namespace

cpu::KvLayout kv_layout(const ModelShape& shape, const LiveOptions& options) {
  cpu::KvLayout layout;
  layout.type = options.kv_type;
  layout.layers = shape.layers;
  layout.kv_heads = shape.kv_heads;
  layout.block_tokens = options.block_tokens;
  layout.head_dim = shape.head_dim;
  return layout;
}

cpu::CopyBlocksArgs block_copy(const BlockCopies& copies, std::size_t block_bytes, const void* source,
                               void* target) {
  return {static_cast<int>(copies.from.size()),
          block_bytes,
          source,
          target,
          copies.from.data(),
          copies.to.data()};
}

LiveExecutor::LiveExecutor(Runtime<Cpu>& runtime, const Weights& weights, const WallClock& clock,
                           const LiveOptions& options)
    : runtime_(&runtime),
      clock_(&clock),
      options_(options),
      vocab_(weights.shape.vocab),
      cache_(runtime, kv_layout(weights.shape, options), options.kv_blocks, options.host_blocks),
      transformer_(runtime, weights, cache_.layout(), cache_.pool(), options.tokens_max + 1) {
  transformer_.reserve(options.rows, options.sequences);
}

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
  cache_.forget(handle);
  if (!sink_) return;
  // At depth 1 a row may have run once more after its end.
  const std::size_t tokens =
      std::min(sequence.emitted.size(), static_cast<std::size_t>(sequence.output_tokens));
  sink_(sequence.id, std::span(sequence.emitted).first(tokens));
}

void LiveExecutor::vacate(Slot slot) {
  Resident& row = resident(slot);
  cache_.release(slot);
  if (row.request != kNoHandle) sequences_[index(row.request)].slot = kNoSlot;
  row = {};
}

void LiveExecutor::leave(const StepPlan& plan) {
  for (const Eviction& eviction : plan.evictions) {
    FT_CHECK(resident(eviction.slot).request == eviction.request, index(eviction.slot),
             index(eviction.request));
    if (eviction.swapped)
      cache_.swap_out(eviction.slot, eviction.request, eviction.context_tokens, copies_out_);
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
    if (admission.swapped_in) cache_.swap_in(admission.slot, admission.request, copies_in_);
  }
}

void LiveExecutor::refresh_table(Slot slot, std::int32_t tokens) {
  if (tables_) cache_.use_external_table(slot, tables_(slot));
  cache_.grow(slot, tokens);
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
  const std::span<const std::int32_t> table = cache_.table(slot);
  const std::int32_t block_tokens = options_.block_tokens;
  for (std::int32_t position = context; position < context + tokens; ++position) {
    rows_.tokens.push_back(known_token(sequence, position));
    rows_.positions.push_back(position);
    rows_.kv_slots.push_back(std::int64_t{table[static_cast<std::size_t>(position / block_tokens)]} *
                                 block_tokens +
                             position % block_tokens);
  }
  row.context = context + tokens;
  const std::int32_t pages = (row.context + block_tokens - 1) / block_tokens;
  rows_.pages.insert(rows_.pages.end(), table.begin(), table.begin() + pages);
  rows_.close_sequence(row.context);
}

void LiveExecutor::add_chunk(const Chunk& chunk) {
  add_sequence(chunk.slot, chunk.context, chunk.tokens);
  if (!chunk.sampled) return;
  rows_.sampled.push_back(rows_.rows() - 1);
  sampled_.push_back({chunk.request});
}

void LiveExecutor::add_padding(std::int32_t tokens, std::int32_t context) {
  if (tokens == 0) return;
  for (std::int32_t position = context - tokens; position < context; ++position) {
    rows_.tokens.push_back(0);
    rows_.positions.push_back(position);
    rows_.kv_slots.push_back(-1);
  }
  const std::int32_t pages = (context + options_.block_tokens - 1) / options_.block_tokens;
  rows_.pages.insert(rows_.pages.end(), static_cast<std::size_t>(pages), cache_.dummy_block());
  rows_.close_sequence(context);
}

void LiveExecutor::add_dead_row(std::span<const std::int32_t> table, std::int32_t context) {
  rows_.tokens.push_back(0);
  rows_.positions.push_back(context - 1);
  rows_.kv_slots.push_back(-1);
  const auto pages = static_cast<std::size_t>((context + options_.block_tokens - 1) / options_.block_tokens);
  const std::size_t own = std::min(pages, table.size());
  rows_.pages.insert(rows_.pages.end(), table.begin(), table.begin() + static_cast<std::ptrdiff_t>(own));
  rows_.pages.insert(rows_.pages.end(), pages - own, cache_.dummy_block());
  rows_.close_sequence(context);
  rows_.sampled.push_back(rows_.rows() - 1);
  sampled_.push_back({kNoHandle});
}

/// Ended sequences decode along: they read what they have, write nothing, and nobody looks at their tokens.
/// They are the residents that the plan leaves out.
void LiveExecutor::add_dead_rows(const StepPlan& plan) {
  std::int32_t left = plan.dead_rows;
  for (std::size_t slot = 0; slot < residents_.size() && left > 0; ++slot) {
    const Resident& row = residents_[slot];
    if (row.request == kNoHandle || row.last_plan == plan.number || row.context == 0) continue;
    add_dead_row(cache_.table(Slot{static_cast<std::uint32_t>(slot)}), row.context);
    --left;
  }
  const auto context =
      static_cast<std::int32_t>(plan.dead_rows == 0 ? 0 : plan.dead_context_sum / plan.dead_rows);
  for (; left > 0; --left) add_dead_row({}, std::max(1, context));
}

void LiveExecutor::add_rows(const StepPlan& plan) {
  rows_.clear();
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
    rows_.sampled.push_back(rows_.rows() - 1);
    Resident& row = resident(decode.slot);
    row.last_plan = plan.number;
    sampled_.push_back({row.request});
  }
  add_dead_rows(plan);
}

Window LiveExecutor::launch(const StepPlan& plan, Time begin) {
  copies_out_.clear();
  copies_in_.clear();
  leave(plan);
  enter(plan);
  add_rows(plan);
  transformer_.prepare(rows_);
  if (options_.depth > 0) runtime_->launch(work_);
  Window window;
  window.begin = begin;
  window.end_known = false;
  return window;
}

void LiveExecutor::run_step(const cpu::Team& team) {
  const std::size_t bytes = cache_.layout().block_bytes();
  if (!copies_out_.from.empty()) {
    cpu::copy_blocks(block_copy(copies_out_, bytes, cache_.pool(), cache_.host_pool()), team.share);
    team.barrier();
  }
  if (!copies_in_.from.empty()) {
    cpu::copy_blocks(block_copy(copies_in_, bytes, cache_.host_pool(), cache_.pool()), team.share);
    team.barrier();
  }
  transformer_.forward(team);
}

Time LiveExecutor::complete(const StepPlan&, const Window&) {
  if (options_.depth > 0)
    runtime_->wait();
  else
    runtime_->run(work_);
  take_tokens();
  return clock_->now();
}

void LiveExecutor::take_tokens() {
  const std::span<const std::int32_t> tokens = transformer_.sampled();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (sampled_[i].request != kNoHandle) sequences_[index(sampled_[i].request)].emitted.push_back(tokens[i]);
}

Time LiveExecutor::transfer_end(const Copy& copy, Time begin) {
  FT_CHECK(false, "the CPU backend copies within steps", copy.blocks);
  return begin;
}

}  // namespace foretoken

#include "sim/presets.hpp"

#include <algorithm>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario_policy.hpp"
#include "sim/units.hpp"

// The rows follow the published schedulers; names and defaults are those of the original engines.

namespace foretoken {
namespace {

using Settings = EngineSettings;
using Context = EngineContext;
using Parameter = EngineParameter;

/// The default of a whole number, unless a value is given.
std::int64_t or_else(const Json& value, std::int64_t derived) {
  return value.is_null() ? derived : value.as_int64();
}

/// A parameter that is one field of the policy.
template <auto kMember>
Json to_policy(Settings& settings, const Context&, const Json& value) {
  using Type = std::decay_t<decltype(settings.policy.*kMember)>;
  if constexpr (std::is_same_v<Type, bool>)
    settings.policy.*kMember = value.as_bool();
  else if constexpr (std::is_same_v<Type, double>)
    settings.policy.*kMember = value.as_double();
  else
    settings.policy.*kMember = static_cast<Type>(value.as_int64());
  return value;
}

/// A parameter that only one value is simulated of; the field's range holds it there.
Json fixed(Settings&, const Context&, const Json& value) { return value; }

/// vLLM's defaults grow on devices of 70 GiB and more, A100 excepted.
bool is_large_device(const Context& context) {
  return context.device_memory_bytes >= 70 * kGib && context.device_name.find("A100") == std::string::npos;
}

Json apply_order(Settings& settings, const Context&, const Json& value) {
  const bool by_priority = value.as_string() == "priority";
  settings.policy.order = by_priority ? Order::priority : Order::fcfs;
  settings.policy.victim = by_priority ? Victim::lowest_priority : Victim::last_admitted;
  return value;
}

Json apply_context_length(Settings& settings, const Context& context, const Json& value) {
  const std::int64_t tokens = or_else(value, context.model_tokens_max);
  settings.model_tokens_max = static_cast<std::int32_t>(tokens);
  return tokens;
}

Json apply_v1_sequences(Settings& settings, const Context& context, const Json& value) {
  const std::int64_t sequences = or_else(value, is_large_device(context) ? 1024 : 256);
  settings.policy.sequences_max = static_cast<std::int32_t>(sequences);
  return sequences;
}

Json apply_v1_tokens(Settings& settings, const Context& context, const Json& value) {
  std::int64_t derived = is_large_device(context) ? 8192 : 2048;
  derived = std::max<std::int64_t>(derived, settings.policy.sequences_max);
  if (!settings.policy.chunked) derived = std::max<std::int64_t>(derived, settings.model_tokens_max);
  const std::int64_t tokens = or_else(value, derived);
  settings.policy.batch_tokens_max = static_cast<std::int32_t>(tokens);
  return tokens;
}

Json apply_v1_reserve(Settings& settings, const Context&, const Json& value) {
  settings.policy.reserve = value.as_bool() ? Reserve::known : Reserve::chunk;
  return value;
}

Json apply_async(Settings& settings, const Context&, const Json& value) {
  const bool is_on = value.is_null() || value.as_bool();
  settings.policy.depth = is_on ? 1 : 0;
  return is_on;
}

Json apply_v0_chunked(Settings& settings, const Context&, const Json& value) {
  Policy& policy = settings.policy;
  policy.chunked = value.as_bool();
  // The chunked step is another loop: decodes first, and it admits even after it preempted, past the swapped.
  policy.form = policy.chunked ? Form::decodes_first : Form::prefill_exclusive;
  policy.freeze_after_preemption = policy.swapped_first = !policy.chunked;
  return value;
}

Json apply_v0_tokens(Settings& settings, const Context&, const Json& value) {
  const std::int64_t least = std::max<std::int64_t>(2048, settings.policy.sequences_max);
  const std::int64_t whole_prompts = std::max<std::int64_t>(least, settings.model_tokens_max);
  const std::int64_t tokens = or_else(value, settings.policy.chunked ? least : whole_prompts);
  settings.policy.batch_tokens_max = static_cast<std::int32_t>(tokens);
  return tokens;
}

Json apply_v0_preemption(Settings& settings, const Context&, const Json& value) {
  const bool swaps = !value.is_null() && value.as_string() == "swap";
  settings.policy.preempt = swaps ? PreemptMode::swap : PreemptMode::recompute;
  return swaps ? "swap" : "recompute";
}

Json apply_utilization(Settings& settings, const Context&, const Json& value) {
  settings.memory_utilization = value.as_double();
  return value;
}

Json apply_kv_blocks(Settings& settings, const Context&, const Json& value) {
  settings.kv_blocks = or_else(value, 0);
  return value;
}

Json apply_swap_space(Settings& settings, const Context&, const Json& value) {
  settings.swap_gib = value.as_double();
  return value;
}

Json apply_batch_delay(Settings& settings, const Context&, const Json& value) {
  settings.policy.join = Join::count_or_timeout;
  settings.policy.join_timeout = std::chrono::microseconds(value.as_int64());
  return value;
}

Json apply_preferred_batch(Settings& settings, const Context&, const Json& value) {
  const std::int64_t count = or_else(value, settings.policy.sequences_max);
  settings.policy.join_count = static_cast<std::int32_t>(count);
  return count;
}

constexpr Parameter kContextLength{
    integer_field("max_model_len", "tokens", 1, kInt32Max, "null",
                  "Longest sequence served, prompt and answer together; default: what the model allows"),
    apply_context_length};
constexpr Parameter kBlockSize{integer_field("block_size", "tokens", 1, 1024, "16", "Tokens per KV block"),
                               to_policy<&Policy::block_tokens>, "block_tokens"};
constexpr Parameter kUtilization{number_field("gpu_memory_utilization", "", 0.01, 1, "0.9",
                                              "Share of device memory that the engine may use"),
                                 apply_utilization};
constexpr Parameter kKvBlocks{integer_field("num_gpu_blocks_override", "blocks", 1, 9e15, "null",
                                            "Blocks of the KV pool; default: what memory leaves"),
                              apply_kv_blocks};
constexpr Parameter kOrder{
    choice_field("policy", "fcfs|priority", "fcfs", "Who is first; a lower priority number is earlier"),
    apply_order, "order"};
constexpr Parameter kWatermarkOnePercent{
    number_field("watermark", "", 0, 0.99, "0.01", "Share of the blocks that an admission leaves free"),
    to_policy<&Policy::watermark>, "watermark"};

constexpr Parameter kV1Chunked{
    boolean_field("enable_chunked_prefill", "true", "A prompt may be cut to the token budget"),
    to_policy<&Policy::chunked>, "chunked"};
constexpr Parameter kV1Sequences{
    integer_field("max_num_seqs", "sequences", 1, 1e6, "null",
                  "Resident sequences at most; default: 256, from 70 GiB (not A100) 1024"),
    apply_v1_sequences, "sequences_max"};
constexpr Parameter kV1Tokens{integer_field("max_num_batched_tokens", "tokens", 1, kInt32Max, "null",
                                            "Tokens in one step; default: 2048, from 70 GiB (not A100) 8192"),
                              apply_v1_tokens, "batch_tokens_max"};
constexpr Parameter kV1LongPrefill{integer_field("long_prefill_token_threshold", "tokens", 0, kInt32Max, "0",
                                                 "Tokens of one request in one step at most; 0: no limit"),
                                   to_policy<&Policy::chunk_tokens_max>, "chunk_tokens_max"};
constexpr Parameter kV1Reserve{boolean_field("scheduler_reserve_full_isl", "true",
                                             "Admit only when the whole sequence fits into free blocks"),
                               apply_v1_reserve};
constexpr Parameter kV1Watermark{
    number_field("watermark", "", 0, 0.99, "0",
                 "Share of the blocks that an admission leaves free while others run"),
    to_policy<&Policy::watermark>, "watermark"};
constexpr Parameter kV1Async{boolean_field("async_scheduling", "null",
                                           "A step is planned while the one before it runs; default: true"),
                             apply_async, "depth"};
constexpr Parameter kV1PrefixCache{
    boolean_field("enable_prefix_caching", "true", "Full blocks of equal prefixes are shared and kept"),
    to_policy<&Policy::prefix_cache>, "prefix_cache"};
constexpr Parameter kPartialPrefills{integer_field("max_num_partial_prefills", "requests", 1, 1, "1",
                                                   "Accepted as the original accepts it, without effect"),
                                     fixed};
constexpr Parameter kLongPartialPrefills{integer_field("max_long_partial_prefills", "requests", 1, 1, "1",
                                                       "Accepted as the original accepts it, without effect"),
                                         fixed};
constexpr Parameter kStreamInterval{
    integer_field("stream_interval", "tokens", 1, 1, "1", "Tokens per message to the client"), fixed};

constexpr Parameter kV0Sequences{
    integer_field("max_num_seqs", "sequences", 1, 1e6, "256", "Resident sequences at most"),
    to_policy<&Policy::sequences_max>, "sequences_max"};
constexpr Parameter kV0Chunked{
    boolean_field("enable_chunked_prefill", "false", "Decodes first, then chunks of prompts, in one step"),
    apply_v0_chunked, "chunked"};
constexpr Parameter kV0Tokens{integer_field("max_num_batched_tokens", "tokens", 1, kInt32Max, "null",
                                            "Tokens in one step; default: 2048, whole prompts max_model_len"),
                              apply_v0_tokens, "batch_tokens_max"};
constexpr Parameter kV0Preemption{
    choice_field("preemption_mode", "recompute|swap", "null", "How a sequence yields; default: recompute"),
    apply_v0_preemption, "preempt"};
constexpr Parameter kV0SwapSpace{
    number_field("swap_space", "GiB", 0, 1e6, "4", "Host memory for swapped sequences"), apply_swap_space};
constexpr Parameter kV0PrefixCache{
    boolean_field("enable_prefix_caching", "false", "Full blocks of equal prefixes are shared and kept"),
    to_policy<&Policy::prefix_cache>, "prefix_cache"};
constexpr Parameter kV0DelayFactor{
    number_field("scheduler_delay_factor", "", 0, 0, "0", "Wait before the next prompt; not simulated"),
    fixed};

constexpr Parameter kSequences128{
    integer_field("max_num_seqs", "sequences", 1, 1e6, "128", "Resident sequences at most"),
    to_policy<&Policy::sequences_max>, "sequences_max"};
constexpr Parameter kSarathiChunk{
    integer_field("chunk_size", "tokens", 1, kInt32Max, "512", "Tokens in one step"),
    to_policy<&Policy::batch_tokens_max>, "batch_tokens_max"};
constexpr Parameter kSarathiDynamic{
    {"enable_dynamic_chunking_schedule", ValueKind::boolean, "", 0, 0, "false", "false",
     "Chunks that shrink as a prompt advances; not simulated"},
    fixed};

constexpr Parameter kBatchSize{
    integer_field("batch_size", "sequences", 1, 1e6, "32", "Sequences in one batch at most"),
    to_policy<&Policy::sequences_max>, "sequences_max"};
constexpr Parameter kPreferredBatch{integer_field("preferred_batch_size", "sequences", 1, 1e6, "null",
                                                  "Waiting requests that start a batch; default: batch_size"),
                                    apply_preferred_batch, "join_count"};
constexpr Parameter kBatchDelay{
    integer_field("max_queue_delay_microseconds", "us", 0, 9e12, "0",
                  "Longest wait of the oldest request before a smaller batch starts"),
    apply_batch_delay};

Policy static_policy() {
  Policy policy;
  policy.reserve = Reserve::max_len;
  policy.take = Take::reserved;
  policy.batch_tokens_max = 0;
  policy.chunked = false;
  policy.padded = true;
  policy.place = Place::contiguous;
  policy.release_at_batch_end = true;
  policy.preempt = PreemptMode::none;
  policy.delivery = Delivery::batch_end;
  return policy;
}

Policy orca_policy() {
  Policy policy;
  policy.reserve = Reserve::max_len;
  policy.take = Take::reserved;
  policy.form = Form::decodes_first;
  policy.batch_tokens_max = 0;
  policy.chunked = false;
  policy.place = Place::contiguous;
  policy.preempt = PreemptMode::none;
  return policy;
}

Policy vllm_v0_policy() {
  Policy policy;
  policy.take = Take::known;
  return policy;
}

Policy vllm_v1_policy() {
  Policy policy;
  policy.watermark_only_when_busy = true;
  policy.null_blocks = 1;
  return policy;
}

Policy sarathi_policy() {
  Policy policy;
  policy.take = Take::known;
  policy.form = Form::decodes_first;
  policy.freeze_after_preemption = false;
  return policy;
}

constexpr const Parameter* kStatic[] = {&kContextLength, &kBatchSize,   &kPreferredBatch, &kBatchDelay,
                                        &kBlockSize,     &kUtilization, &kKvBlocks};
constexpr const Parameter* kOrca[] = {&kContextLength, &kSequences128, &kBlockSize, &kUtilization,
                                      &kKvBlocks};
constexpr const Parameter* kVllmV0[] = {
    &kContextLength, &kV0Sequences, &kV0Chunked, &kV0Tokens,    &kOrder,    &kWatermarkOnePercent,
    &kV0Preemption,  &kV0SwapSpace, &kBlockSize, &kUtilization, &kKvBlocks, &kV0PrefixCache,
    &kV0DelayFactor};
constexpr const Parameter* kVllmV1[] = {
    &kContextLength, &kV1Sequences,     &kV1Chunked,           &kV1Tokens,
    &kV1LongPrefill, &kOrder,           &kV1Reserve,           &kV1Watermark,
    &kV1Async,       &kBlockSize,       &kUtilization,         &kKvBlocks,
    &kV1PrefixCache, &kPartialPrefills, &kLongPartialPrefills, &kStreamInterval};
constexpr const Parameter* kSarathi[] = {
    &kContextLength, &kSequences128, &kSarathiChunk, &kWatermarkOnePercent,
    &kBlockSize,     &kUtilization,  &kKvBlocks,     &kSarathiDynamic};

const Preset kPresets[] = {
    {"static", "Whole batches: N requests or a timeout start one; padded, delivered at its end",
     static_policy, kStatic},
    {"orca", "Continuous batching: whole prompts join at any step, each reserves the longest sequence",
     orca_policy, kOrca},
    {"vllm-v0", "Paged blocks; admitted prompts run alone, then decodes; recompute or swap", vllm_v0_policy,
     kVllmV0},
    {"vllm-v1", "Paged blocks, prefix cache; one budget in list order, chunks, planned a step ahead",
     vllm_v1_policy, kVllmV1},
    {"sarathi", "Stall-free: decodes first, then chunks of prompts, under one budget", sarathi_policy,
     kSarathi},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

}  // namespace foretoken

#include "sim/scenario_policy.hpp"

#include <cmath>
#include <string_view>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/units.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kOrders = "fcfs|priority|shortest_prompt|shortest_predicted";
constexpr std::string_view kReserves = "chunk|known|prompt_and_max|max_len";
constexpr std::string_view kTakes = "chunk|known|reserved";
constexpr std::string_view kJoins = "any|when_empty|count_or_timeout";
constexpr std::string_view kHeads = "stop|bounded_skip";
constexpr std::string_view kForms = "list_order|decodes_first|prefill_exclusive";
constexpr std::string_view kPlaces = "paged|contiguous";
constexpr std::string_view kVictims = "last_admitted|lowest_priority";
constexpr std::string_view kModes = "none|recompute|swap";
constexpr std::string_view kDeliveries = "streamed|request_end|batch_end";

template <auto kMember>
constexpr PolicyField whole(std::string_view name, std::string_view unit, double low, double high,
                            std::string_view description) {
  return {integer_field(name, unit, low, high, "", description),
          [](const Policy& policy) { return Json(std::int64_t{policy.*kMember}); },
          [](Policy& policy, const Json& value) {
            policy.*kMember = static_cast<std::int32_t>(value.as_int64());
          }};
}

template <auto kMember>
constexpr PolicyField flag(std::string_view name, std::string_view description) {
  return {boolean_field(name, "", description), [](const Policy& policy) { return Json(policy.*kMember); },
          [](Policy& policy, const Json& value) { policy.*kMember = value.as_bool(); }};
}

template <auto kMember, const std::string_view& kChoices>
constexpr PolicyField word(std::string_view name, std::string_view description) {
  return {choice_field(name, kChoices, "", description),
          [](const Policy& policy) { return Json(choice_name(kChoices, static_cast<int>(policy.*kMember))); },
          [](Policy& policy, const Json& value) {
            const int position = choice_index(kChoices, value.as_string());
            policy.*kMember = static_cast<std::decay_t<decltype(policy.*kMember)>>(position);
          }};
}

/// A duration in seconds; null is without end.
template <auto kMember>
constexpr PolicyField wait(std::string_view name, std::string_view description) {
  return {number_field(name, "s", 0, 1e6, "null", description),
          [](const Policy& policy) {
            return policy.*kMember == kForever ? Json() : Json(seconds(policy.*kMember));
          },
          [](Policy& policy, const Json& value) {
            policy.*kMember = value.is_null() ? kForever : Duration(std::llround(value.as_double() * 1e12));
          }};
}

const PolicyField kPolicyFields[] = {
    word<&Policy::order, kOrders>("order", "Who is first among the waiting; ties go to the earlier arrival"),
    whole<&Policy::sequences_max>("sequences_max", "sequences", 1, 1e6, "Resident sequences at most"),
    word<&Policy::reserve, kReserves>("reserve",
                                      "What must fit into free blocks before a request is admitted"),
    word<&Policy::take, kTakes>("take", "Blocks taken at admission"),
    {number_field("watermark", "", 0, 0.99, "", "Share of the usable blocks that an admission leaves free"),
     [](const Policy& policy) { return Json(policy.watermark); },
     [](Policy& policy, const Json& value) { policy.watermark = value.as_double(); }},
    flag<&Policy::watermark_only_when_busy>("watermark_only_when_busy",
                                            "The watermark binds only while something is resident"),
    word<&Policy::join, kJoins>("join", "When waiting requests may become resident"),
    whole<&Policy::join_count>("join_count", "requests", 1, 1e6, "Waiting requests that start a batch"),
    wait<&Policy::join_timeout>("join_timeout_s", "Age of the oldest waiting request that starts a batch"),
    word<&Policy::head_of_line, kHeads>("head_of_line", "What happens when the first in line does not fit"),
    whole<&Policy::overtakes_max>("overtakes_max", "requests", 0, kInt32Max,
                                  "Later requests admitted before one that does not fit"),
    wait<&Policy::overtake_age_max>("overtake_age_max_s", "Age at which nobody may overtake any more"),
    flag<&Policy::freeze_after_preemption>("freeze_after_preemption",
                                           "No admission in a step that preempted"),
    flag<&Policy::swapped_first>("swapped_first", "Swapped sequences come back before anybody is admitted"),
    word<&Policy::form, kForms>("form", "Which phases a step has, in which order"),
    whole<&Policy::batch_tokens_max>("batch_tokens_max", "tokens", 0, kInt32Max,
                                     "Tokens in one step at most; 0: no limit"),
    flag<&Policy::chunked>("chunked", "A prompt may be cut to the token budget"),
    whole<&Policy::chunk_tokens_max>("chunk_tokens_max", "tokens", 0, kInt32Max,
                                     "Tokens of one request in one step at most; 0: no limit"),
    flag<&Policy::padded>(
        "padded", "Prompts are padded to the longest of their batch, ended sequences stay as dead rows"),
    word<&Policy::place, kPlaces>("place", "Blocks anywhere, or one contiguous range per sequence"),
    whole<&Policy::block_tokens>("block_tokens", "tokens", 1, 1024, "Tokens per KV block"),
    flag<&Policy::prefix_cache>("prefix_cache", "Full blocks of equal prefixes are shared and kept"),
    whole<&Policy::null_blocks>("null_blocks", "blocks", 0, 1024, "Blocks that never hold a sequence"),
    flag<&Policy::release_at_batch_end>("release_at_batch_end",
                                        "Blocks come back when the last sequence of a batch ends"),
    word<&Policy::victim, kVictims>("victim", "Who yields when blocks run out"),
    word<&Policy::preempt, kModes>("preempt", "How it yields"),
    word<&Policy::delivery, kDeliveries>("delivery", "When the client sees tokens"),
    whole<&Policy::depth>("depth", "steps", 0, 1, "1: a step is planned while the one before it runs"),
    flag<&Policy::deferred_frees>("deferred_frees",
                                  "At depth 1, blocks given up come back when the step in flight has ended"),
};

}  // namespace

std::span<const PolicyField> policy_fields() { return kPolicyFields; }

void read_policy(JsonReader& reader, Policy& policy) {
  for (const PolicyField& row : kPolicyFields) {
    if (reader.has(row.field.name)) row.set(policy, read_field(reader, row.field));
    reader.get(row.field.name);
  }
  reader.finish();
}

Json policy_to_json(const Policy& policy) {
  Json json = Json::object();
  for (const PolicyField& row : kPolicyFields) json.set(row.field.name, row.get(policy));
  return json;
}

namespace {

/// What a policy cannot be, in the words of whoever wrote it.
void check_combinations(const Policy& policy, const Capacity& capacity, const std::string& place,
                        const PolicyNames& name) {
  const auto require = [&](bool holds, const std::string& expected, const std::string& found) {
    if (!holds) throw input_error(place, expected, found);
  };
  const auto number = [&](std::string_view field, std::int64_t value) {
    return name(field) + " = " + std::to_string(value);
  };
  const bool reserves_all = policy.reserve == Reserve::prompt_and_max || policy.reserve == Reserve::max_len;
  const bool has_batches = policy.join != Join::any;
  const std::int32_t budget = policy.batch_tokens_max;
  const std::string reserve = name("reserve"), take = name("take"), join = name("join"),
                    place_key = name("place"), preempt = name("preempt"), cache = name("prefix_cache"),
                    tokens = name("batch_tokens_max"),
                    joins = join + " \"when_empty\" or \"count_or_timeout\"";
  require(policy.take != Take::reserved || reserves_all,
          reserve + " \"prompt_and_max\" or \"max_len\" where " + take + " is \"reserved\"",
          "a smaller reservation");
  require(policy.take != Take::known || policy.reserve != Reserve::chunk,
          reserve + " \"known\" or more where " + take + " is \"known\"", reserve + " \"chunk\"");
  require(policy.preempt != PreemptMode::none || policy.take == Take::reserved,
          take + " \"reserved\" where " + preempt + " is \"none\" (a sequence must be able to finish)",
          "blocks that grow later");
  require(policy.place != Place::contiguous || policy.take == Take::reserved,
          take + " \"reserved\" where " + place_key + " is \"contiguous\" (a range cannot grow)",
          "blocks that grow later");
  require(policy.place != Place::contiguous || !policy.prefix_cache,
          place_key + " \"paged\" where " + cache + " is true", "\"contiguous\"");
  require(budget == 0 || budget >= policy.sequences_max,
          tokens + " of at least " + number("sequences_max", policy.sequences_max), std::to_string(budget));
  require(policy.chunked || budget == 0 || budget >= capacity.model_tokens_max,
          tokens + " of at least the longest sequence, max_model_len = " +
              std::to_string(capacity.model_tokens_max) + ", where " + name("chunked") + " is false",
          std::to_string(budget));
  require(policy.chunked || policy.chunk_tokens_max == 0,
          name("chunk_tokens_max") + " 0 where " + name("chunked") + " is false",
          std::to_string(policy.chunk_tokens_max));
  require(has_batches || !policy.padded, joins + " where " + name("padded") + " is true", "\"any\"");
  require(has_batches || !policy.release_at_batch_end,
          joins + " where " + name("release_at_batch_end") + " is true", "\"any\"");
  require(has_batches || policy.delivery != Delivery::batch_end,
          joins + " where " + name("delivery") + " is \"batch_end\"", "\"any\"");
  require(policy.join != Join::count_or_timeout || policy.join_count <= policy.sequences_max,
          name("join_count") + " of at most " + number("sequences_max", policy.sequences_max),
          std::to_string(policy.join_count));
  require(policy.head_of_line == HeadOfLine::bounded_skip || policy.overtakes_max == 0,
          name("head_of_line") + " \"bounded_skip\" with " + name("overtakes_max"), "\"stop\"");
  require(
      policy.preempt != PreemptMode::swap || capacity.host_blocks > 0,
      "host blocks to swap to (engine.swap_space or memory.host_blocks) where " + preempt + " is \"swap\"",
      "none");
  // Shared blocks that move to the host would be missed by those who share them.
  require(policy.preempt != PreemptMode::swap || !policy.prefix_cache,
          preempt + " \"recompute\" where " + cache + " is true", "\"swap\"");
}

}  // namespace

void check_policy(const Policy& policy, const Capacity& capacity, const std::string& place,
                  const PolicyNames& name) {
  check_combinations(policy, capacity, place,
                     name ? name : PolicyNames([](std::string_view field) { return std::string(field); }));
  const std::int64_t usable = capacity.kv_blocks - policy.null_blocks;
  const std::int64_t longest =
      (std::int64_t{capacity.model_tokens_max} + policy.block_tokens - 1) / policy.block_tokens;
  if (usable < 1)
    throw InfeasibleError(place + ": the KV pool has no usable block (" + std::to_string(capacity.kv_blocks) +
                          " in all)");
  if (policy.reserve == Reserve::max_len && usable < longest)
    throw InfeasibleError(place + ": each request reserves " + std::to_string(longest) + " blocks for " +
                          std::to_string(capacity.model_tokens_max) + " tokens, but the KV pool has only " +
                          std::to_string(usable) + "; lower max_model_len");
}

}  // namespace foretoken

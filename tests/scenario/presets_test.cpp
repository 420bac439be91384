#include "sim/presets.hpp"

#include <string>

#include "sim/base/error.hpp"
#include "sim/scenario_policy.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
const EngineContext kSmallDevice{8192, 24 * kGib, "NVIDIA L4"};

EngineConfig engine_of(const std::string& text, const EngineContext& context = kSmallDevice) {
  const Json json = Json::parse(text, "test.json");
  return read_engine(JsonReader(json, "test.json"), context);
}

Policy policy_of(const std::string& text, const EngineContext& context = kSmallDevice) {
  return engine_of(text, context).settings.policy;
}

std::string fault_of(const std::string& text) {
  try {
    engine_of(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("vllm-v1 has the defaults of the original", "[unit]") {
  const Policy policy = policy_of(R"({"preset": "vllm-v1"})");
  CHECK(policy.order == Order::fcfs);
  CHECK(policy.sequences_max == 256);
  CHECK(policy.batch_tokens_max == 2048);
  CHECK(policy.chunked);
  CHECK(policy.chunk_tokens_max == 0);
  CHECK(policy.reserve == Reserve::known);
  CHECK(policy.take == Take::chunk);
  CHECK(policy.watermark == 0.0);
  CHECK(policy.watermark_only_when_busy);
  CHECK(policy.freeze_after_preemption);
  CHECK(policy.form == Form::list_order);
  CHECK(policy.prefix_cache);
  CHECK(policy.null_blocks == 1);
  CHECK(policy.block_tokens == 16);
  CHECK(policy.victim == Victim::last_admitted);
  CHECK(policy.preempt == PreemptMode::recompute);
  CHECK(policy.depth == 1);
}

TEST_CASE("vllm-v1 allows more on large devices, but not on an A100", "[unit]") {
  const std::string text = R"({"preset": "vllm-v1"})";
  CHECK(policy_of(text, {8192, 80 * kGib, "NVIDIA H100"}).sequences_max == 1024);
  CHECK(policy_of(text, {8192, 80 * kGib, "NVIDIA H100"}).batch_tokens_max == 8192);
  CHECK(policy_of(text, {8192, 80 * kGib, "NVIDIA A100-SXM4-80GB"}).sequences_max == 256);
}

TEST_CASE("vllm-v1 parameters reach the policy under their original names", "[unit]") {
  const EngineConfig engine =
      engine_of(R"({"preset": "vllm-v1", "max_num_seqs": 64, "max_num_batched_tokens": 512,
      "long_prefill_token_threshold": 128, "policy": "priority", "scheduler_reserve_full_isl": false,
      "watermark": 0.05, "async_scheduling": false, "block_size": 32, "enable_prefix_caching": false,
      "gpu_memory_utilization": 0.8, "max_model_len": 4096, "num_gpu_blocks_override": 77})");
  const Policy& policy = engine.settings.policy;
  CHECK(policy.sequences_max == 64);
  CHECK(policy.batch_tokens_max == 512);
  CHECK(policy.chunk_tokens_max == 128);
  CHECK(policy.order == Order::priority);
  CHECK(policy.victim == Victim::lowest_priority);
  CHECK(policy.reserve == Reserve::chunk);
  CHECK(policy.watermark == 0.05);
  CHECK(policy.depth == 0);
  CHECK(policy.block_tokens == 32);
  CHECK_FALSE(policy.prefix_cache);
  CHECK(engine.settings.memory_utilization == 0.8);
  CHECK(engine.settings.model_tokens_max == 4096);
  CHECK(engine.settings.kv_blocks == 77);
}

TEST_CASE("vllm-v0 lets prompts run alone, and decodes first where it chunks", "[unit]") {
  const Policy whole = policy_of(R"({"preset": "vllm-v0"})");
  CHECK(whole.form == Form::prefill_exclusive);
  CHECK_FALSE(whole.chunked);
  CHECK(whole.batch_tokens_max == 8192);
  CHECK(whole.sequences_max == 256);
  CHECK(whole.reserve == Reserve::known);
  CHECK(whole.take == Take::known);
  CHECK(whole.watermark == 0.01);
  CHECK_FALSE(whole.watermark_only_when_busy);
  CHECK(whole.swapped_first);
  CHECK(whole.preempt == PreemptMode::recompute);
  CHECK(whole.depth == 0);
  const Policy chunked = policy_of(R"({"preset": "vllm-v0", "enable_chunked_prefill": true})");
  CHECK(chunked.form == Form::decodes_first);
  CHECK(chunked.batch_tokens_max == 2048);
  CHECK_FALSE(chunked.freeze_after_preemption);
  CHECK(policy_of(R"({"preset": "vllm-v0", "preemption_mode": "swap"})").preempt == PreemptMode::swap);
}

TEST_CASE("orca and static reserve the longest sequence and never preempt", "[unit]") {
  const Policy orca = policy_of(R"({"preset": "orca"})");
  CHECK(orca.reserve == Reserve::max_len);
  CHECK(orca.take == Take::reserved);
  CHECK(orca.join == Join::any);
  CHECK(orca.form == Form::decodes_first);
  CHECK(orca.batch_tokens_max == 0);
  CHECK(orca.preempt == PreemptMode::none);
  const Policy batch =
      policy_of(R"({"preset": "static", "batch_size": 8, "max_queue_delay_microseconds": 100000})");
  CHECK(batch.sequences_max == 8);
  CHECK(batch.join == Join::count_or_timeout);
  CHECK(batch.join_count == 8);
  CHECK(batch.join_timeout == std::chrono::milliseconds(100));
  CHECK(batch.padded);
  CHECK(batch.release_at_batch_end);
  CHECK(batch.delivery == Delivery::batch_end);
  CHECK(batch.preempt == PreemptMode::none);
}

TEST_CASE("sarathi puts decodes first under a budget of 512", "[unit]") {
  const Policy policy = policy_of(R"({"preset": "sarathi"})");
  CHECK(policy.form == Form::decodes_first);
  CHECK(policy.batch_tokens_max == 512);
  CHECK(policy.sequences_max == 128);
  CHECK(policy.take == Take::known);
  CHECK(policy.watermark == 0.01);
  CHECK(policy.chunked);
  CHECK(policy.preempt == PreemptMode::recompute);
}

TEST_CASE("our own names have the last word", "[unit]") {
  const Policy policy = policy_of(R"({"preset": "vllm-v1", "max_num_seqs": 64,
      "sched": {"sequences_max": 3, "order": "shortest_prompt", "join_timeout_s": 0.25}})");
  CHECK(policy.sequences_max == 3);
  CHECK(policy.order == Order::shortest_prompt);
  CHECK(policy.join_timeout == std::chrono::milliseconds(250));
}

TEST_CASE("a resolved engine reads back as the same policy", "[unit]") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const EngineConfig first = engine_of(Json::object({{"preset", preset.name}}).dump());
    const Json written = engine_to_json(first);
    const EngineConfig second = engine_of(written.dump());
    CHECK(engine_to_json(second) == written);
  }
}

TEST_CASE("every preset keeps the rules that are checked for all", "[unit]") {
  for (const Preset& preset : presets()) {
    INFO(preset.name);
    const EngineConfig engine = engine_of(Json::object({{"preset", preset.name}}).dump());
    Capacity capacity;
    capacity.kv_blocks = 100'000;
    capacity.host_blocks = 10;
    capacity.model_tokens_max = engine.settings.model_tokens_max;
    CHECK_NOTHROW(check_policy(engine.settings.policy, capacity, "here"));
  }
}

TEST_CASE("a parameter of another engine, an unknown one and a wrong value are refused by name", "[unit]") {
  CHECK(fault_of(R"({"preset": "sarathi", "max_num_batched_tokens": 512})").find("a parameter of vllm-v0") !=
        std::string::npos);
  CHECK(fault_of(R"({"preset": "vllm-v1", "max_num_seq": 5})").find("did you mean \"max_num_seqs\"?") !=
        std::string::npos);
  CHECK(fault_of("{\n\"preset\": \"vllm-v1\",\n\"block_size\": 2000}") ==
        "test.json:3: /block_size: expected an integer in [1, 1024], found 2000");
  CHECK(fault_of(R"({"preset": "vlm-v1"})").find("did you mean \"vllm-v1\"?") != std::string::npos);
  CHECK(fault_of(R"({"preset": "vllm-v1", "max_num_partial_prefills": 2})") != "");
  CHECK(fault_of(R"({"preset": "sarathi", "enable_dynamic_chunking_schedule": true})").find("only false") !=
        std::string::npos);
  CHECK(fault_of(R"({"preset": "vllm-v1", "policy": "lifo"})").find("one of \"fcfs\", \"priority\"") !=
        std::string::npos);
  CHECK(fault_of(R"({"preset": "vllm-v1", "sched": {"joins": "any"}})").find("/sched/joins") !=
        std::string::npos);
}

TEST_CASE("combinations that could never serve what they admit are refused", "[unit]") {
  Capacity capacity;
  capacity.kv_blocks = 1000;
  capacity.model_tokens_max = 4096;
  const auto is_refused = [&](const auto& change) {
    Policy policy = policy_of(R"({"preset": "vllm-v1"})");
    change(policy);
    try {
      check_policy(policy, capacity, "here");
    } catch (const InputError&) {
      return true;
    }
    return false;
  };
  CHECK_FALSE(is_refused([](Policy&) {}));
  CHECK(is_refused([](Policy& p) { p.preempt = PreemptMode::none; }));
  CHECK(is_refused([](Policy& p) { p.preempt = PreemptMode::swap; }));
  CHECK(is_refused([](Policy& p) { p.take = Take::reserved; }));
  CHECK(is_refused([](Policy& p) { p.place = Place::contiguous; }));
  CHECK(is_refused([](Policy& p) { p.batch_tokens_max = p.sequences_max - 1; }));
  CHECK(is_refused([](Policy& p) { p.chunked = false; }));
  CHECK(is_refused([](Policy& p) { p.padded = true; }));
  CHECK(is_refused([](Policy& p) { p.delivery = Delivery::batch_end; }));
  CHECK(is_refused([](Policy& p) { p.overtakes_max = 1; }));
}

TEST_CASE("a pool without room for one reservation cannot exist", "[unit]") {
  const Policy policy = policy_of(R"({"preset": "orca"})");
  Capacity capacity;
  capacity.model_tokens_max = 4096;
  capacity.kv_blocks = 255;
  CHECK_THROWS_AS(check_policy(policy, capacity, "here"), InfeasibleError);
  capacity.kv_blocks = 256;
  CHECK_NOTHROW(check_policy(policy, capacity, "here"));
}

}  // namespace foretoken

#include <sstream>

#include "sim/base/json.hpp"
#include "sim/presets.hpp"
#include "tests/catch.hpp"
#include "tests/support/plain_scheduler.hpp"
#include "tests/support/stage.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

/// Writes down the steps of a run as the plain twin does.
class StepRecorder final : public Executor, public Observer {
 public:
  explicit StepRecorder(Executor& priced) : priced_(priced) {}
  Window launch(const StepPlan& plan, Time begin) override {
    now_.begin = begin;
    for (const Chunk& c : plan.chunks) now_.tokens[ids_[index(c.request)]] = c.tokens;
    for (const DecodeRow& r : plan.decodes) now_.tokens[owners_[r.slot]] = 1;
    steps.push_back(std::exchange(now_, PlainStep{}));
    return priced_.launch(plan, begin);
  }
  Time complete(const StepPlan& plan, const Window& window) override {
    return priced_.complete(plan, window);
  }
  Time transfer_end(const Copy& copy, Time begin) override { return priced_.transfer_end(copy, begin); }
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}
  void on_arrival(Handle handle, const Offer& offer, Time) override {
    ids_[index(handle)] = static_cast<int>(offer.request.id);
  }
  void on_reject(const Offer&, Refusal, Time) override {}
  void on_admit(const Admission& a, Time) override {
    owners_[a.slot] = ids_[index(a.request)];
    now_.admitted.push_back(ids_[index(a.request)]);
  }
  void on_preempt(const Eviction& e, std::int32_t, Time) override {
    now_.evicted.push_back(ids_[index(e.request)]);
  }
  void on_step(const StepRecord&) override {}
  void on_token(Handle, std::int32_t, Time) override {}
  void on_end(Handle, Ending, std::int32_t, Time) override {}
  void on_batch_end(Time) override {}
  std::vector<PlainStep> steps;

 private:
  Executor& priced_;
  PlainStep now_;
  std::map<std::size_t, int> ids_;
  std::map<Slot, int> owners_;
};

std::string text_of(const std::vector<PlainStep>& steps, std::size_t last) {
  std::ostringstream out;
  for (std::size_t i = last >= 3 ? last - 3 : 0; i <= last && i < steps.size(); ++i) {
    out << "\n    " << i << " at " << picoseconds(steps[i].begin) << ":";
    for (const auto& [id, n] : steps[i].tokens) out << ' ' << id << 'x' << n;
    for (const int id : steps[i].evicted) out << " evicted " << id;
    for (const int id : steps[i].admitted) out << " admitted " << id;
  }
  return out.str();
}

/// One engine in the words of its users and in the words of the plain twin.
struct Pair {
  std::string json;
  PlainConfig plain;
};

/// The engine's own parameters, written and kept.
void draw_engine(Draw& draw, PlainConfig& c, std::ostringstream& json) {
  const auto field = [&](const char* name, auto value) { json << ", \"" << name << "\": " << value; };
  const double share = draw.pick({0.0, 0.01, 0.1, 0.25});
  const auto watermark = [&] {
    field("watermark", share);
    c.watermark = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(c.blocks)));
  };
  switch (c.engine) {
    case PlainEngine::fixed_batch:
      c.chunked = false;
      c.join_count = draw.small(1, c.sequences_max);
      c.join_timeout = Duration{draw.between(0, 20) * 1000000};
      json << ", \"preset\": \"static\", \"batch_size\": " << c.sequences_max;
      field("preferred_batch_size", c.join_count);
      field("max_queue_delay_microseconds", c.join_timeout.count() / 1000000);
      break;
    case PlainEngine::orca:
      c.chunked = false;
      json << ", \"preset\": \"orca\", \"max_num_seqs\": " << c.sequences_max;
      break;
    case PlainEngine::vllm_v0:
      c.chunked = false;
      c.budget = std::max(c.sequences_max, draw.small(4, 150));
      json << ", \"preset\": \"vllm-v0\", \"max_num_seqs\": " << c.sequences_max;
      field("max_num_batched_tokens", c.budget);
      watermark();
      break;
    case PlainEngine::vllm_v1:
      --c.blocks;  // one block holds nobody
      c.chunked = draw.chance(0.8);
      c.budget = c.sequences_max + draw.small(0, 60);
      if (c.chunked && draw.chance(0.3)) c.chunk_cap = draw.small(1, 20);
      c.reserve_full = draw.chance(0.5);
      json << ", \"preset\": \"vllm-v1\", \"enable_prefix_caching\": false, \"max_num_seqs\": "
           << c.sequences_max;
      field("max_num_batched_tokens", c.budget);
      field("long_prefill_token_threshold", c.chunk_cap);
      field("enable_chunked_prefill", c.chunked ? "true" : "false");
      field("scheduler_reserve_full_isl", c.reserve_full ? "true" : "false");
      field("async_scheduling", c.depth == 1 ? "true" : "false");
      watermark();
      break;
    case PlainEngine::sarathi:
      c.budget = c.sequences_max + draw.small(0, 60);
      json << ", \"preset\": \"sarathi\", \"max_num_seqs\": " << c.sequences_max;
      field("chunk_size", c.budget);
      watermark();
      break;
  }
}

Pair draw_pair(Draw& draw, PlainEngine engine, int depth) {
  PlainConfig c;
  c.engine = engine;
  c.depth = depth;
  c.sequences_max = draw.small(1, 8);
  c.block_tokens = draw.pick({1, 2, 4, 16});
  c.context_max = draw.small(8, 100);
  c.blocks = 3 + draw.between(20, 300) / c.block_tokens;
  std::ostringstream json;
  json << "{\"block_size\": " << c.block_tokens << ", \"max_model_len\": " << c.context_max
       << ", \"num_gpu_blocks_override\": " << c.blocks;
  draw_engine(draw, c, json);
  json << "}";
  return {json.str(), c};
}

void compare(Draw& draw, PlainEngine engine, int depth = 0) {
  auto [text, plain] = draw_pair(draw, engine, depth);
  const Json json = Json::parse(text, "drawn");
  const EngineConfig config = read_engine(JsonReader(json, "drawn"), {plain.context_max, 0, ""});
  Setup setup;
  setup.policy = config.settings.policy;
  setup.capacity.kv_blocks = config.settings.kv_blocks;
  setup.capacity.model_tokens_max = config.settings.model_tokens_max;
  // Twins price by tokens alone.
  setup.prices.step = 1000;
  setup.prices.chunk_token = setup.prices.decode_row = draw.pick({0, 10, 250});
  plain.step_price = Duration{setup.prices.step};
  plain.token_price = Duration{setup.prices.decode_row};
  Traits traits;
  traits.closed_loop = traits.leaving = false;
  setup.items = draw_items(draw, setup.capacity, setup.policy, setup.prices, traits);
  setup.scheduler = {true, draw.chance(0.5)};
  setup.engine.skip_ahead = false;
  draw.note(text);
  draw.note(describe(setup.items));
  Stage stage(setup);
  StepRecorder recorder(stage.executor);
  LAW(stage.run(recorder, recorder).drained);
  std::vector<Offer> offers;
  for (const Item& item : setup.items) offers.push_back(item.offer);
  const std::vector<PlainStep> steps = PlainScheduler(plain, offers).run();
  for (std::size_t i = 0; i < std::max(steps.size(), recorder.steps.size()); ++i)
    LAW(i < steps.size() && i < recorder.steps.size() && steps[i] == recorder.steps[i], "plain",
        text_of(steps, i), "\n  core", text_of(recorder.steps, i));
}

}  // namespace

TEST_CASE("static batching is what its description says, step by step", "[property]") {
  for_each_seed(400, [](Draw& draw) { compare(draw, PlainEngine::fixed_batch); });
}
TEST_CASE("orca is what its description says, step by step", "[property]") {
  for_each_seed(400, [](Draw& draw) { compare(draw, PlainEngine::orca); });
}
TEST_CASE("vllm-v0 is what its description says, step by step", "[property]") {
  for_each_seed(800, [](Draw& draw) { compare(draw, PlainEngine::vllm_v0); });
}
TEST_CASE("vllm-v1 is what its description says, step by step", "[property]") {
  for_each_seed(800, [](Draw& draw) { compare(draw, PlainEngine::vllm_v1); });
}
TEST_CASE("vllm-v1 with asynchronous scheduling is what its description says, step by step", "[property]") {
  for_each_seed(800, [](Draw& draw) { compare(draw, PlainEngine::vllm_v1, 1); });
}
TEST_CASE("sarathi is what its description says, step by step", "[property]") {
  for_each_seed(800, [](Draw& draw) { compare(draw, PlainEngine::sarathi); });
}

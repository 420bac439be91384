// vLLM V1, one step at a time, worked out by hand from its description. Blocks hold 4 tokens; one block holds
// nobody.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::string v1_engine(int budget, int blocks, int context, const std::string& more = "") {
  return R"({"preset": "vllm-v1", "async_scheduling": false, "max_num_seqs": 4, "block_size": 4,
             "max_num_batched_tokens": )" +
         std::to_string(budget) + R"(, "max_model_len": )" + std::to_string(context) +
         R"(, "num_gpu_blocks_override": )" + std::to_string(blocks) + more + "}";
}
const std::string kNoCache = R"(, "enable_prefix_caching": false)";

}  // namespace

TEST_CASE("vllm-v1: one budget in list order, prompts are cut to what is left of it") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(8, 17, 32, kNoCache), fast);
    CHECK(desk.scheduler().kv_use().blocks_total == 16);
    desk.submit({.prompt_tokens = 10, .max_new_tokens = 3});
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 2});
    // The prompt is longer than the budget of 8.
    CHECK(desk.plan() == "+A A:8@0; token_budget 1");
    desk.commit();
    // Only the chunk's blocks are taken.
    CHECK(desk.held() == 2);
    CHECK(desk.plan() == "+B A:2@8* B:3@0*");
    desk.commit();
    CHECK(desk.plan() == "A@10 B@3");
    desk.commit("B");
    // A decode is first because it was admitted first: 1 + 7 tokens.
    desk.submit({.prompt_tokens = 20, .max_new_tokens = 1});
    CHECK(desk.plan() == "+C A@11 C:7@0");
    desk.commit("A");
    CHECK(desk.plan() == "C:8@7");
    desk.commit();
    CHECK(desk.plan() == "C:5@15*");
    desk.commit("C");
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 0});
    CHECK(desk.plan() == "+D D:8@0");
    desk.commit();
    CHECK(desk.plan() == "D:1@8");
    desk.commit("D");
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("vllm-v1: the threshold of long prefills is a hard cap, also when the request is alone") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(8, 17, 32, kNoCache + R"(, "long_prefill_token_threshold": 4)"), fast);
    desk.submit({.prompt_tokens = 10, .max_new_tokens = 1});
    CHECK(desk.plan() == "+A A:4@0");
    desk.commit();
    // Shorts get the rest: 4 + 3 of 8.
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 1});
    CHECK(desk.plan() == "+B A:4@4 B:3@0*");
    desk.commit("B");
    CHECK(desk.plan() == "A:2@8*");
    desk.commit("A");
  }
}

TEST_CASE(
    "vllm-v1 without chunks: a prompt that exceeds what is left waits, one over the budget never fits") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(8, 17, 32, kNoCache + R"(, "enable_chunked_prefill": false)"), fast);
    CHECK(desk.submit({.prompt_tokens = 8, .max_new_tokens = 1}) == "never_fits");
    CHECK(desk.submit({.prompt_tokens = 5, .max_new_tokens = 1}) == "A");
    CHECK(desk.submit({.prompt_tokens = 4, .max_new_tokens = 1}) == "B");
    CHECK(desk.submit({.prompt_tokens = 1, .max_new_tokens = 1}) == "C");
    // Strictly in line: C would fit into the 3 tokens that are left.
    CHECK(desk.plan() == "+A A:5@0*; token_budget 2");
    desk.commit("A");
    CHECK(desk.plan() == "+B +C B:4@0* C:1@0*");
    desk.commit("BC");
  }
}

TEST_CASE(
    "vllm-v1: growth that fails evicts the most recent, even the one that grows, and nobody is admitted") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(16, 6, 20, kNoCache), fast);
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 4});
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 6});
    CHECK(desk.plan() == "+A +B A:7@0* B:7@0*");
    desk.commit();
    CHECK(desk.plan() == "A@7 B@7");
    desk.commit();
    // A takes the fifth block for its ninth token. B needs one, too: running.pop() is B itself. Its 2 blocks
    // would hold C, but after a preemption the waiting are not looked at.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "-B(8) A@8; preemption_freeze 2");
    desk.commit();
    // B went to the front. It emitted 2 tokens, knows 9 and needs 3 blocks, as the whole sequence must fit.
    CHECK(desk.plan() == "A@9; kv_blocks 1 head_of_line 1");
    desk.commit("A");
    CHECK(desk.plan() == "+B +C B:9@0* C:1@0*");
    desk.commit("C");
    CHECK(desk.plan() == "B@9");
    desk.commit();
    // B emitted 4 of 6 tokens; its client leaves.
    desk.cancel('B');
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE(
    "vllm-v1: admission by the next chunk admits and preempts in turn, by the whole sequence it waits") {
  for (const bool fast : kBothWays) {
    for (const bool whole : {true, false}) {
      Desk desk(
          v1_engine(8, 6, 20, kNoCache + R"(, "scheduler_reserve_full_isl": )" + (whole ? "true" : "false")),
          fast);
      desk.submit({.prompt_tokens = 8, .max_new_tokens = 9});
      CHECK(desk.plan() == "+A A:8@0*");
      desk.commit();
      // A takes its third block. B's 16 tokens are 4 blocks, its first chunk of 7 takes 2: 2 are free.
      desk.submit({.prompt_tokens = 16, .max_new_tokens = 1});
      for (const std::int32_t context : {8, 10}) {
        const std::string decode = "A@" + std::to_string(context);
        const std::string next = "A@" + std::to_string(context + 1);
        CHECK(desk.plan() == (whole ? decode + "; kv_blocks 1" : "+B " + decode + " B:7@0"));
        desk.commit();
        // The second chunk would need 2 more blocks, and B is the most recent.
        CHECK(desk.plan() == (whole ? next + "; kv_blocks 1" : "-B(7) " + next + "; preemption_freeze 1"));
        desk.commit();
      }
      // A's fourth block leaves one, which does not hold a chunk of 7 either.
      CHECK(desk.plan() == "A@12; kv_blocks 1");
      desk.commit();
    }
  }
}

TEST_CASE("vllm-v1: with priorities the least urgent yields, and what it was granted is refunded") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(16, 6, 20, kNoCache + R"(, "policy": "priority")"), fast);
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 9, .priority = 5});
    CHECK(desk.plan() == "+A A:7@0*");
    desk.commit();
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 4, .priority = 0});
    CHECK(desk.plan() == "+B A@7 B:7@0*");
    desk.commit();
    // A's ninth token takes the fifth block.
    CHECK(desk.plan() == "A@8 B@7");
    desk.commit();
    // A has its token already when B finds no block for its ninth. A was admitted first, but yields.
    CHECK(desk.plan() == "-A(9) B@8; preemption_freeze 1");
    desk.commit();
    // A emitted 3 tokens; 10 known tokens need 3 blocks, 2 are free.
    CHECK(desk.plan() == "B@9; kv_blocks 1");
    desk.commit("B");
    CHECK(desk.plan() == "+A A:10@0*");
  }
}

TEST_CASE("vllm-v1: a resident that yields for itself ends the walk; those behind it get nothing") {
  for (const bool fast : kBothWays) {
    // 6 blocks hold somebody.
    Desk desk(v1_engine(16, 7, 20, kNoCache + R"(, "policy": "priority")"), fast);
    desk.submit({.prompt_tokens = 8, .max_new_tokens = 9, .priority = 0});
    CHECK(desk.plan() == "+A A:8@0*");
    desk.commit();
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 9, .priority = 5});
    CHECK(desk.plan() == "+B A@8 B:7@0*");
    desk.commit();
    desk.submit({.prompt_tokens = 2, .max_new_tokens = 9, .priority = 0});
    // A has 3 blocks, B 2 and C the last one.
    CHECK(desk.plan() == "+C A@9 B@7 C:2@0*");
    desk.commit();
    // B's ninth token finds no block, and B itself is the least urgent: the walk ends before C, whose block
    // had room.
    CHECK(desk.plan() == "-B(8) A@10; kv_blocks 1 preemption_freeze 1");
    desk.commit();
    // C has fallen behind the others, so that its token comes as a chunk.
    CHECK(desk.plan() == "A@11 C:1@2*; kv_blocks 1");
  }
}

TEST_CASE("vllm-v1: with priorities the lower number is first, equals in the order of arrival") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(1, 6, 20, kNoCache + R"(, "policy": "priority", "sched": {"sequences_max": 1})"),
              fast);
    for (const std::int32_t priority : {3, 1, 1, -2})
      desk.submit({.prompt_tokens = 1, .max_new_tokens = 1, .priority = priority});
    CHECK(desk.plan() == "+D D:1@0*; sequence_cap 3");
    desk.commit("D");
    CHECK(desk.plan() == "+B B:1@0*; sequence_cap 2");
    desk.commit("B");
    CHECK(desk.plan() == "+C C:1@0*; sequence_cap 1");
    desk.commit("C");
    CHECK(desk.plan() == "+A A:1@0*");
  }
}

TEST_CASE("vllm-v1: hits are full blocks, and the last known token is always computed") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(16, 17, 32), fast);
    desk.submit({.prompt_tokens = 8, .max_new_tokens = 2, .hashes = {11, 12}});
    CHECK(desk.plan() == "+A A:8@0*");
    desk.commit();
    CHECK(desk.plan() == "A@8");
    desk.commit("A");
    CHECK(desk.held() == 0);
    // Both blocks are cached, but only 8 - 1 tokens may be hit: one block.
    desk.submit({.prompt_tokens = 8, .max_new_tokens = 1, .hashes = {11, 12}});
    CHECK(desk.plan() == "+B(hit 4) B:4@4*");
    desk.commit("B");
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 1, .hashes = {11, 12}});
    CHECK(desk.plan() == "+C(hit 8) C:1@8*");
    CHECK(desk.held() == 3);
    desk.commit("C");
    // The chain breaks at the second block; and equal content after another prefix is other content.
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 1, .hashes = {11, 99}});
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 1, .hashes = {99, 12}});
    CHECK(desk.plan() == "+D(hit 4) +E D:5@4* E:9@0*");
    desk.commit("DE");
    // Without hashes it shares with nobody.
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 1});
    CHECK(desk.plan() == "+F F:9@0*");
    desk.commit("F");
  }
}

TEST_CASE("vllm-v1: a preempted sequence finds the blocks again that it gave up") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(16, 6, 20), fast);
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 4});
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 6});
    CHECK(desk.plan() == "+A +B A:7@0* B:7@0*");
    desk.commit();
    CHECK(desk.plan() == "A@7 B@7");
    desk.commit();
    CHECK(desk.plan() == "-B(8) A@8; preemption_freeze 1");
    desk.commit();
    // B needs one new block beside its two cached ones, but these lie free, and then nothing is left.
    CHECK(desk.plan() == "A@9; kv_blocks 1");
    desk.commit("A");
    // Of 9 known tokens 8 are in full blocks that nobody has taken meanwhile.
    CHECK(desk.plan() == "+B(hit 8) B:1@8*");
    desk.commit();
    CHECK(desk.plan() == "B@9");
    desk.commit();
  }
}

TEST_CASE("vllm-v1: without a bound, an answer may fill the context") {
  for (const bool fast : kBothWays) {
    Desk desk(v1_engine(16, 17, 8, kNoCache), fast);
    CHECK(desk.submit({.prompt_tokens = 8, .max_new_tokens = -1}) == "exceeds_context");
    CHECK(desk.submit({.prompt_tokens = 5, .max_new_tokens = 4}) == "exceeds_context");
    CHECK(desk.submit({.prompt_tokens = 5, .max_new_tokens = -1}) == "A");
    // 8 - 5 = 3 tokens.
    CHECK(desk.plan() == "+A A:5@0*");
    desk.commit();
    CHECK(desk.plan() == "A@5");
    desk.commit();
    CHECK(desk.plan() == "A@6");
    desk.commit("A");
    CHECK(desk.plan() == "idle no_work");
  }
}

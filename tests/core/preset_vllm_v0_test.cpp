// vLLM V0, worked out by hand from its description. Blocks hold 4 tokens; the watermark of 1 % is
// one block.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::string v0_engine(int blocks, const std::string& more = "") {
  return R"({"preset": "vllm-v0", "max_num_seqs": 4, "max_num_batched_tokens": 16, "max_model_len": 16,
             "block_size": 4, "num_gpu_blocks_override": )" +
         std::to_string(blocks) + more + "}";
}

const std::string kChunked = R"(, "enable_chunked_prefill": true)";

/// Two sequences in 5 blocks, up to the moment at which A, with 8 tokens, needs a third block and none is
/// free: A's prompt of 6 and B's of 7 take 2 blocks each, B's ninth token took the last one.
void run_short_of_memory(Desk& desk) {
  desk.submit({.prompt_tokens = 6, .max_new_tokens = 5});
  desk.submit({.prompt_tokens = 7, .max_new_tokens = 5});
  // After the admissions one block is free, which is what the watermark asks for.
  CHECK(desk.plan() == "+A +B A:6@0* B:7@0*");
  desk.commit();
  CHECK(desk.held() == 4);
  CHECK(desk.plan() == "A@6 B@7");
  desk.commit();
  // Growth does not care for the watermark.
  CHECK(desk.plan() == "A@7 B@8");
  desk.commit();
  CHECK(desk.held() == 5);
}

}  // namespace

TEST_CASE("vllm-v0: admitted prompts run alone, then all decode") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(8), fast);
    desk.submit({.prompt_tokens = 6, .max_new_tokens = 3});
    desk.submit({.prompt_tokens = 8, .max_new_tokens = 3});
    desk.submit({.prompt_tokens = 4, .max_new_tokens = 2});
    // 6 + 8 = 14 tokens; 4 more exceed the budget of 16, and a prompt is not cut.
    CHECK(desk.plan() == "+A +B A:6@0* B:8@0*; token_budget 1");
    desk.commit();
    // The third prompt is alone in its step: two decodes stall.
    CHECK(desk.plan() == "+C C:4@0*; prefill_exclusive 2");
    desk.commit();
    CHECK(desk.plan() == "A@6 B@8 C@4");
    // C has two tokens. A's 7 tokens are in 2 blocks, B's 9 in 3.
    desk.commit("C");
    CHECK(desk.held() == 5);
    CHECK(desk.plan() == "A@7 B@9");
    desk.commit("AB");
    CHECK(desk.held() == 0);
    // No token asked for, and one: both end with their prompts.
    desk.submit({.prompt_tokens = 10, .max_new_tokens = 0});
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "+D +E D:10@0 E:1@0*");
    desk.commit("DE");
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("vllm-v0: the door refuses what exceeds the context or could never fit under the watermark") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(100), fast);
    CHECK(desk.submit({.prompt_tokens = 16, .max_new_tokens = 1}) == "exceeds_context");
    CHECK(desk.submit({.prompt_tokens = 15, .max_new_tokens = 1}) == "A");
    // 3 blocks less one are 8 tokens.
    Desk tight(v0_engine(3), fast);
    CHECK(tight.submit({.prompt_tokens = 8, .max_new_tokens = 1}) == "never_fits");
    CHECK(tight.submit({.prompt_tokens = 7, .max_new_tokens = 1}) == "A");
    CHECK(tight.plan() == "+A A:7@0*");
  }
}

TEST_CASE("vllm-v0: recompute evicts the tail of the queue, which keeps the tokens it has emitted") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5), fast);
    run_short_of_memory(desk);
    // B, the last admitted, yields 9 tokens of context; A takes one of its 3 blocks.
    CHECK(desk.plan() == "-B(9) A@8; evicted_this_step 1");
    desk.commit();
    CHECK(desk.held() == 3);
    // B emitted 3 tokens, so it knows 10: 3 blocks, of which 2 are free. Nobody passes it.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "A@9; kv_blocks 1 head_of_line 1");
    // That was A's fifth token.
    desk.commit("A");
    // Prompt and emitted tokens are computed again, and the fourth token comes from that.
    CHECK(desk.plan() == "+B +C B:10@0* C:1@0*");
    desk.commit("C");
    CHECK(desk.plan() == "B@10");
    desk.commit("B");
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("vllm-v0: swap keeps the context, and the swapped come back before anybody is admitted") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, R"(, "preemption_mode": "swap")"), fast, 4);
    run_short_of_memory(desk);
    // Swap-out and swap-in never share a step.
    CHECK(desk.plan() == "-B(9 swapped) A@8; preemption_freeze 1");
    desk.commit();
    CHECK(desk.held() == 3);
    CHECK(desk.scheduler().kv_use().host_blocks_held == 3);
    // C would fit into 2 free blocks; B's 3 blocks, for 9 tokens and the next, do not.
    desk.submit({.prompt_tokens = 2, .max_new_tokens = 1});
    CHECK(desk.plan() == "A@9; kv_blocks 1 swapped_first 1");
    desk.commit("A");
    // B decodes its fourth token in the step in which it comes back.
    CHECK(desk.plan() == "+B(back 9) B:1@9*; swapped_first 1");
    desk.commit();
    CHECK(desk.scheduler().kv_use().host_blocks_held == 0);
    CHECK(desk.plan() == "+C C:2@0*; prefill_exclusive 1");
    desk.commit("C");
    CHECK(desk.plan() == "B@10");
    desk.commit("B");
    CHECK(desk.held() == 0);
  }
}

TEST_CASE("vllm-v0: what does not fit into the host pool is recomputed") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, R"(, "preemption_mode": "swap")"), fast, 2);
    run_short_of_memory(desk);
    CHECK(desk.plan() == "-B(9) A@8; evicted_this_step 1");
  }
}

TEST_CASE("vllm-v0: a client that leaves while swapped gives the host its blocks back") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, R"(, "preemption_mode": "swap")"), fast, 4);
    run_short_of_memory(desk);
    CHECK(desk.plan() == "-B(9 swapped) A@8; preemption_freeze 1");
    desk.commit();
    desk.cancel('B');
    CHECK(desk.scheduler().kv_use().host_blocks_held == 0);
    CHECK(desk.plan() == "A@9");
    desk.commit("A");
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("vllm-v0 chunked: decodes, then chunks under one budget, blocks of whole prompts at admission") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(9, kChunked), fast);
    desk.submit({.prompt_tokens = 12, .max_new_tokens = 2});
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 2});
    // 12 + 4 of 16 tokens; 3 + 3 blocks of 9.
    CHECK(desk.plan() == "+A +B A:12@0* B:4@0");
    desk.commit();
    CHECK(desk.held() == 6);
    // 8 tokens would be left, but C's 3 blocks leave none free.
    desk.submit({.prompt_tokens = 10, .max_new_tokens = 1});
    CHECK(desk.plan() == "A@12 B:5@4*; kv_blocks 1");
    // A grew past the watermark.
    CHECK(desk.held() == 7);
    desk.commit("A");
    CHECK(desk.plan() == "+C B@9 C:10@0*");
    desk.commit("BC");
    CHECK(desk.held() == 0);
  }
}

TEST_CASE("vllm-v0 chunked: it admits in the step in which it swaps out, past the swapped") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, R"(, "preemption_mode": "swap")" + kChunked), fast, 4);
    run_short_of_memory(desk);
    // Swap-in is tried only if nothing was preempted, and before the waiting; neither bars these. B's 3
    // blocks less A's one are 2 free; C takes one and leaves the watermark.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "-B(9 swapped) +C A@8 C:1@0*; preemption_freeze 1");
    desk.commit("C");
    // B needs 3 blocks and the watermark; D passes it again.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "+D A@9 D:1@0*; kv_blocks 1");
    desk.commit("AD");
    CHECK(desk.plan() == "+B(back 9) B:1@9*");
  }
}

TEST_CASE("vllm-v0 chunked: a sequence that recomputes is first in line and holds the others up") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, kChunked), fast);
    run_short_of_memory(desk);
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "-B(9) A@8; head_of_line 1 evicted_this_step 1");
    desk.commit();
    CHECK(desk.plan() == "A@9; kv_blocks 1 head_of_line 1");
    desk.commit("A");
    CHECK(desk.plan() == "+B +C B:10@0* C:1@0*");
  }
}

TEST_CASE("transfers beside the steps: blocks are free when they have been copied, and who loads waits") {
  for (const bool fast : kBothWays) {
    Desk desk(v0_engine(5, R"(, "preemption_mode": "swap")"), fast, 4, true);
    run_short_of_memory(desk);
    // B's blocks are on their way to the host and A waits for one of them; to evict more would not help.
    CHECK(desk.plan() == "no step -B(9 swapped); kv_blocks 1 preemption_freeze 1");
    CHECK(desk.plan() == "idle transfer");
    CHECK(desk.held() == 5);
    desk.finish_copy();
    // A fell out of lock-step, so its decode is a chunk of one token.
    CHECK(desk.plan() == "A:1@8*; kv_blocks 1");
    desk.commit();
    CHECK(desk.plan() == "A@9; kv_blocks 1");
    desk.commit("A");
    CHECK(desk.plan() == "no step +B(back 9); transfer 1");
    desk.finish_copy();
    CHECK(desk.plan() == "B:1@9*");
    desk.commit();
    CHECK(desk.plan() == "B@10");
    desk.commit("B");
    CHECK(desk.held() == 0);
  }
}

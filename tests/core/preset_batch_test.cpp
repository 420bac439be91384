// Static batching and Orca, worked out by hand from their descriptions. Blocks hold 4 tokens.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

constexpr std::int64_t kMicrosecond = 1'000'000;

std::string static_engine(int delay_us, int blocks) {
  return R"({"preset": "static", "batch_size": 3, "preferred_batch_size": 2, "block_size": 4,
             "max_model_len": 12, "max_queue_delay_microseconds": )" +
         std::to_string(delay_us) + R"(, "num_gpu_blocks_override": )" + std::to_string(blocks) + "}";
}

}  // namespace

TEST_CASE("static: a batch starts at N or when the oldest has waited, and runs to its end") {
  for (const bool fast : kBothWays) {
    Desk desk(static_engine(100, 9), fast);
    // One waits, two are preferred: the timer of the oldest runs to 0 + 100 us.
    CHECK(desk.submit({.prompt_tokens = 3, .max_new_tokens = 2}) == "A");
    CHECK(desk.plan(0) == "idle join_rule until 100000000");
    // The second makes N. The batch is padded to its longest prompt: 5 - 3 = 2. Each reserves the longest
    // sequence, 12 tokens in 3 blocks.
    CHECK(desk.submit({.prompt_tokens = 5, .max_new_tokens = 3, .arrival = 50 * kMicrosecond}) == "B");
    CHECK(desk.plan(50 * kMicrosecond) == "+A +B A:3@0* B:5@0* pad 2");
    CHECK(desk.held() == 6);
    // There would be a place and memory, but a batch is running.
    CHECK(desk.submit({.prompt_tokens = 2, .max_new_tokens = 1, .arrival = 60 * kMicrosecond}) == "C");
    desk.commit();
    CHECK(desk.plan(70 * kMicrosecond) == "A@3 B@5; join_rule 1");
    // A has its two tokens. It stays as a dead row with its 4 tokens, and keeps its memory.
    desk.commit("A");
    CHECK(desk.held() == 6);
    CHECK_FALSE(desk.scheduler().take_batch_end());
    CHECK(desk.plan(80 * kMicrosecond) == "B@6 dead 1@4; join_rule 1");
    desk.commit("B");
    CHECK(desk.held() == 0);
    CHECK(desk.scheduler().take_batch_end());
    // C came at 60 us and is alone: at 160 us it has waited long enough, and not a moment before.
    CHECK(desk.plan(100 * kMicrosecond) == "idle join_rule until 160000000");
    CHECK(desk.plan(160 * kMicrosecond - 1) == "idle join_rule until 160000000");
    CHECK(desk.plan(160 * kMicrosecond) == "+C C:2@0*");
    desk.commit("C");
    CHECK(desk.plan(170 * kMicrosecond) == "idle no_work");
  }
}

TEST_CASE("static: without delay whoever is there starts, as far as memory goes") {
  for (const bool fast : kBothWays) {
    // Two reservations of 3 blocks fit into 6.
    Desk desk(static_engine(0, 6), fast);
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    desk.submit({.prompt_tokens = 4, .max_new_tokens = 0});
    CHECK(desk.plan() == "+A +B A:1@0* B:1@0*; kv_blocks 1");
    // Answers of one token end with their prompts, and with them the batch.
    desk.commit("AB");
    CHECK(desk.scheduler().take_batch_end());
    // An embedding asks for no token: its prompt is computed, and nothing is sampled.
    CHECK(desk.plan() == "+C C:4@0");
    desk.commit("C");
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("static: a client that leaves a batch stays in it as a dead row") {
  for (const bool fast : kBothWays) {
    Desk desk(static_engine(0, 9), fast);
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 5});
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 3});
    CHECK(desk.plan() == "+A +B A:3@0* B:3@0*");
    desk.commit();
    desk.cancel('A');
    CHECK(desk.held() == 6);
    CHECK(desk.plan() == "B@3 dead 1@3");
    desk.commit();
    // The last of the batch leaves, too: all memory comes back.
    desk.cancel('B');
    CHECK(desk.held() == 0);
    CHECK(desk.scheduler().take_batch_end());
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("orca: whole prompts join at any step, each reserves the longest sequence") {
  for (const bool fast : kBothWays) {
    // 8 tokens are 2 blocks, so that 5 blocks hold two sequences, whatever they ask for.
    Desk desk(R"({"preset": "orca", "max_num_seqs": 3, "block_size": 4, "max_model_len": 8,
                  "num_gpu_blocks_override": 5})",
              fast);
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 3});
    desk.submit({.prompt_tokens = 2, .max_new_tokens = 2});
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    desk.submit({.prompt_tokens = 4, .max_new_tokens = 0});
    // The first that does not fit stops the queue.
    CHECK(desk.plan() == "+A +B A:3@0* B:2@0*; kv_blocks 1 head_of_line 1");
    desk.commit();
    CHECK(desk.held() == 4);
    CHECK(desk.plan() == "A@3 B@2; kv_blocks 1 head_of_line 1");
    // B has two tokens and ends; C takes its place in a step together with A's decode.
    desk.commit("B");
    CHECK(desk.plan() == "+C A@4 C:1@0*; kv_blocks 1");
    CHECK(desk.held() == 4);
    desk.commit("AC");
    CHECK(desk.plan() == "+D D:4@0");
    desk.commit("D");
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("orca: the cap on sequences is one of the whole batch, and the door knows the context") {
  for (const bool fast : kBothWays) {
    Desk desk(R"({"preset": "orca", "max_num_seqs": 1, "block_size": 4, "max_model_len": 8,
                  "num_gpu_blocks_override": 100})",
              fast);
    CHECK(desk.submit({.prompt_tokens = 8, .max_new_tokens = 1}) == "exceeds_context");
    CHECK(desk.submit({.prompt_tokens = 8, .max_new_tokens = 0}) == "A");
    CHECK(desk.submit({.prompt_tokens = 7, .max_new_tokens = 1}) == "B");
    CHECK(desk.plan() == "+A A:8@0; sequence_cap 1");
    desk.commit("A");
    CHECK(desk.plan() == "+B B:7@0*");
    desk.commit("B");
  }
}

// Sarathi, worked out by hand from its description. Blocks hold 4 tokens; the watermark of 1 % is one block.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::string sarathi_engine(int chunk, int blocks) {
  return R"({"preset": "sarathi", "max_num_seqs": 4, "block_size": 4, "max_model_len": 32, "chunk_size": )" +
         std::to_string(chunk) + R"(, "num_gpu_blocks_override": )" + std::to_string(blocks) + "}";
}

}  // namespace

TEST_CASE("sarathi: decodes, then chunks of prompts in one budget; blocks of whole prompts at admission") {
  for (const bool fast : kBothWays) {
    Desk desk(sarathi_engine(8, 10), fast);
    desk.submit({.prompt_tokens = 6, .max_new_tokens = 3});
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 2});
    CHECK(desk.plan() == "+A +B A:6@0* B:2@0");
    desk.commit();
    // 2 and 3 blocks, although B has 2 tokens.
    CHECK(desk.held() == 5);
    CHECK(desk.scheduler().kv_use().blocks_touched == 3);
    // A's decode does not wait for B's prompt.
    CHECK(desk.plan() == "A@6 B:7@2*");
    desk.commit();
    // The whole prompt of C needs 5 blocks, and one must stay free: 5 are free.
    desk.submit({.prompt_tokens = 20, .max_new_tokens = 1});
    CHECK(desk.plan() == "A@7 B@9; kv_blocks 1");
    desk.commit("AB");
    CHECK(desk.plan() == "+C C:8@0");
    desk.commit();
    CHECK(desk.held() == 5);
    CHECK(desk.plan() == "C:8@8");
    desk.commit();
    CHECK(desk.plan() == "C:4@16*");
    desk.commit("C");
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 0});
    CHECK(desk.plan() == "+D D:8@0");
    desk.commit();
    CHECK(desk.plan() == "D:1@8");
    desk.commit("D");
    CHECK(desk.held() == 0);
  }
}

TEST_CASE(
    "sarathi: a decode without a block evicts the tail by recompute, which is first in line afterwards") {
  for (const bool fast : kBothWays) {
    Desk desk(sarathi_engine(16, 5), fast);
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 5});
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 5});
    CHECK(desk.plan() == "+A +B A:7@0* B:7@0*");
    desk.commit();
    CHECK(desk.plan() == "A@7 B@7");
    desk.commit();
    // A's ninth token takes the last block, B's finds none: the tail is B itself. It does not come back in
    // this very step, and C stands behind it.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "-B(8) A@8; head_of_line 1 evicted_this_step 1");
    desk.commit();
    // 9 known tokens need 3 blocks of 2.
    for (const char* decode : {"A@9", "A@10"}) {
      CHECK(desk.plan() == std::string(decode) + "; kv_blocks 1 head_of_line 1");
      desk.commit(std::string(decode) == "A@10" ? "A" : "");
    }
    CHECK(desk.plan() == "+B +C B:9@0* C:1@0*");
    desk.commit("C");
    CHECK(desk.plan() == "B@9");
    desk.commit();
  }
}

// Asynchronous scheduling, worked out by hand from its description: step k + 1 is planned while k runs.
// Blocks hold 4 tokens; one block holds nobody.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::string async_engine(int blocks) {
  return R"({"preset": "vllm-v1", "enable_prefix_caching": false, "max_num_seqs": 4, "block_size": 4,
             "max_num_batched_tokens": 32, "max_model_len": 20, "num_gpu_blocks_override": )" +
         std::to_string(blocks) + "}";
}

}  // namespace

TEST_CASE("asynchronous: an end is seen one step late and wastes one row, whose blocks come back after it") {
  for (const bool fast : kBothWays) {
    Desk desk(async_engine(17), fast);
    // The client allows 5 tokens; the answer has 2.
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 5});
    CHECK(desk.plan() == "+A A:3@0*");
    CHECK(desk.plan() == "A@3");
    desk.commit();
    // The second token is on its way; whether it is the last nobody knows yet.
    CHECK(desk.plan() == "A@4");
    CHECK(desk.wasted() == 0);
    desk.commit("A");
    CHECK(desk.wasted() == 1);
    // The step in flight still writes its fifth token into the second block.
    CHECK(desk.held() == 2);
    CHECK(desk.plan() == "idle no_work");
    desk.commit();
    CHECK(desk.held() == 0);
  }
}

TEST_CASE("asynchronous: who must reach its bound in the step in flight is not planned for again") {
  for (const bool fast : kBothWays) {
    Desk desk(async_engine(17), fast);
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 2});
    CHECK(desk.plan() == "+A A:3@0*");
    CHECK(desk.plan() == "A@3");
    desk.commit();
    CHECK(desk.plan() == "idle in_flight");
    desk.commit("A");
    CHECK(desk.held() == 0);
    // One token, or none: the prompt's step is the last.
    for (const std::int32_t tokens : {1, 0}) {
      desk.submit({.prompt_tokens = 3, .max_new_tokens = tokens});
      const std::string name = tokens == 1 ? "B" : "C";
      CHECK(desk.plan() == "+" + name + " " + name + ":3@0" + (tokens == 1 ? "*" : ""));
      CHECK(desk.plan() == "idle in_flight");
      desk.commit(name);
      CHECK(desk.held() == 0);
    }
  }
}

TEST_CASE("asynchronous: a client that leaves while two steps are planned gives memory back after both") {
  for (const bool fast : kBothWays) {
    Desk desk(async_engine(17), fast);
    desk.submit({.prompt_tokens = 3, .max_new_tokens = 5});
    CHECK(desk.plan() == "+A A:3@0*");
    CHECK(desk.plan() == "A@3");
    desk.cancel('A');
    // The step that runs brought A into being, the one planned decodes it in vain.
    CHECK(desk.wasted() == 1);
    CHECK(desk.held() == 1);
    desk.commit();
    CHECK(desk.held() == 1);
    desk.commit();
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("asynchronous: one eviction whose blocks are still in use is enough, the others wait for them") {
  for (const bool fast : kBothWays) {
    // Three sequences of 2 blocks fill 6.
    Desk desk(async_engine(7), fast);
    for (int i = 0; i < 3; ++i) desk.submit({.prompt_tokens = 7, .max_new_tokens = 6});
    CHECK(desk.plan() == "+A +B +C A:7@0* B:7@0* C:7@0*");
    CHECK(desk.plan() == "A@7 B@7 C@7");
    desk.commit();
    // All need a block for their ninth token. C yields 2, which the step in flight may still touch: enough
    // for A, and for B after it. To go on would evict everybody.
    CHECK(desk.plan() == "no step -C(8); kv_blocks 2 preemption_freeze 1");
    desk.commit();
    // C emitted 2 tokens, of which one when its last step ended: 9 known tokens, 3 blocks.
    CHECK(desk.plan() == "A:1@8* B:1@8*; kv_blocks 1");
    CHECK(desk.held() == 6);
  }
}

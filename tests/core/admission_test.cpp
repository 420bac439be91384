// Who is let in, who is passed over, who leaves: policies made for the purpose, worked out by hand. Blocks
// hold 4 tokens.
#include "tests/catch.hpp"
#include "tests/core/desk.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

Policy small_policy() {
  Policy policy;
  policy.sequences_max = 8;
  policy.take = Take::known;
  policy.batch_tokens_max = 64;
  policy.block_tokens = 4;
  return policy;
}

/// A holds 3 of 6 blocks and grows no further for three steps; B's 13 tokens need 4, the others one each.
void fill_up(Desk& desk, int others) {
  desk.submit({.prompt_tokens = 9, .max_new_tokens = 9});
  CHECK(desk.plan() == "+A A:9@0*");
  desk.commit();
  desk.submit({.prompt_tokens = 13, .max_new_tokens = 1});
  for (int i = 0; i < others; ++i) desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
}

constexpr Capacity kSixBlocks{6, 0, 24, false};

}  // namespace

TEST_CASE("head of line: by default nobody passes the first that does not fit") {
  for (const bool fast : kBothWays) {
    Desk desk(small_policy(), kSixBlocks, fast);
    fill_up(desk, 3);
    CHECK(desk.plan() == "A@9; kv_blocks 1 head_of_line 3");
  }
}

TEST_CASE("head of line: with a bounded skip only so many pass, over all steps") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.head_of_line = HeadOfLine::bounded_skip;
    policy.overtakes_max = 2;
    Desk desk(policy, kSixBlocks, fast);
    fill_up(desk, 3);
    // C and D pass B, which is all it has to bear; E waits behind it.
    CHECK(desk.plan() == "+C +D A@9 C:1@0* D:1@0*; kv_blocks 1 head_of_line 1");
    desk.commit("CD");
    CHECK(desk.plan() == "A@10; kv_blocks 1 head_of_line 1");
    desk.commit();
    desk.cancel('A');
    CHECK(desk.plan() == "+B +E B:13@0* E:1@0*");
    desk.commit("BE");
  }
}

TEST_CASE("head of line: from a certain age on nobody passes") {
  for (const bool fast : kBothWays) {
    for (const std::int64_t now : {99, 100}) {
      Policy policy = small_policy();
      policy.head_of_line = HeadOfLine::bounded_skip;
      policy.overtakes_max = 2;
      policy.overtake_age_max = Duration{100};
      Desk desk(policy, kSixBlocks, fast);
      fill_up(desk, 1);
      CHECK(desk.plan(now) == (now == 99 ? "+C A@9 C:1@0*; kv_blocks 1" : "A@9; kv_blocks 1 head_of_line 1"));
    }
  }
}

TEST_CASE("head of line: tokens that are used up let nobody pass") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.head_of_line = HeadOfLine::bounded_skip;
    policy.overtakes_max = 2;
    policy.chunked = false;
    policy.batch_tokens_max = 13;
    Desk desk(policy, {100, 0, 24, false}, fast);
    for (const std::int32_t tokens : {8, 6, 2}) desk.submit({.prompt_tokens = tokens, .max_new_tokens = 1});
    CHECK(desk.plan() == "+A A:8@0*; token_budget 2");
  }
}

TEST_CASE("joining: only when empty, then all at once") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.join = Join::when_empty;
    Desk desk(policy, kSixBlocks, fast);
    desk.submit({.prompt_tokens = 2, .max_new_tokens = 2});
    CHECK(desk.plan() == "+A A:2@0*");
    desk.commit();
    desk.submit({.prompt_tokens = 2, .max_new_tokens = 2});
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "A@2; join_rule 2");
    desk.commit("A");
    CHECK(desk.plan() == "+B +C B:2@0* C:1@0*");
  }
}

TEST_CASE("orders: the shortest prompt first, equals in the order of arrival") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.order = Order::shortest_prompt;
    policy.sequences_max = 1;
    Desk desk(policy, kSixBlocks, fast);
    for (const std::int32_t tokens : {5, 2, 9, 2})
      desk.submit({.prompt_tokens = tokens, .max_new_tokens = 1});
    CHECK(desk.plan() == "+B B:2@0*; sequence_cap 3");
    desk.commit("B");
    CHECK(desk.plan() == "+D D:2@0*; sequence_cap 2");
    desk.commit("D");
    CHECK(desk.plan() == "+A A:5@0*; sequence_cap 1");
    desk.commit("A");
    CHECK(desk.plan() == "+C C:9@0*");
  }
}

TEST_CASE("leaving: from the queue, in the middle of a prompt, and between two tokens") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.sequences_max = 1;
    policy.batch_tokens_max = 8;
    Desk desk(policy, kSixBlocks, fast);
    for (int i = 0; i < 3; ++i) desk.submit({.prompt_tokens = 12, .max_new_tokens = 3});
    CHECK(desk.plan() == "+A A:8@0; sequence_cap 2");
    // B leaves the queue, also while a step runs.
    desk.cancel('B');
    CHECK((desk.scheduler().waiting() == 1 && desk.scheduler().alive() == 2));
    desk.commit();
    // A leaves half-way through its prompt; its 3 blocks are free at once.
    CHECK(desk.held() == 3);
    desk.cancel('A');
    CHECK(desk.held() == 0);
    CHECK(desk.plan() == "+C C:8@0");
    desk.commit();
    CHECK(desk.plan() == "C:4@8*");
    desk.commit();
    CHECK(desk.plan() == "C@12");
    desk.commit();
    desk.cancel('C');
    CHECK((desk.held() == 0 && desk.scheduler().alive() == 0));
    CHECK(desk.plan() == "idle no_work");
  }
}

TEST_CASE("orders: with a key a preempted sequence goes where its key says, not to the front") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.order = Order::shortest_prompt;
    Desk desk(policy, {5, 0, 20, false}, fast);
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 4});
    desk.submit({.prompt_tokens = 7, .max_new_tokens = 4});
    CHECK(desk.plan() == "+A +B A:7@0* B:7@0*");
    desk.commit();
    CHECK(desk.plan() == "A@7 B@7");
    desk.commit();
    // A's ninth token takes the fifth block, B's finds none.
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "-B(8) A@8; preemption_freeze 2");
    desk.commit();
    // C's prompt of one token is shorter than B's of 7. Then B's 9 tokens do not fit into the last block.
    CHECK(desk.plan() == "+C A@9 C:1@0*; kv_blocks 1");
    desk.commit("AC");
    CHECK(desk.plan() == "+B B:9@0*");
  }
}

TEST_CASE("the watermark is what an admission must leave free") {
  for (const bool fast : kBothWays) {
    Policy policy = small_policy();
    policy.watermark = 0.5;  // 3 of 6 blocks
    Desk desk(policy, kSixBlocks, fast);
    // 9 tokens in 3 blocks leave 3; one more block leaves fewer.
    desk.submit({.prompt_tokens = 9, .max_new_tokens = 1});
    desk.submit({.prompt_tokens = 1, .max_new_tokens = 1});
    CHECK(desk.plan() == "+A A:9@0*; kv_blocks 1");
    desk.commit("A");
    CHECK(desk.plan() == "+B B:1@0*");
    desk.commit("B");
  }
}

#include "tests/catch.hpp"
#include "tests/support/stage.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

bool has_preemptions(const EventLog& log) {
  for (const EventLog::Entry& entry : log.entries())
    if (entry[0] == 'p') return true;
  return false;
}

/// Memory for everything that could ever be resident.
void widen(Setup& setup) {
  setup.capacity.kv_blocks =
      setup.policy.null_blocks + 4 * (setup.policy.sequences_max + 1) *
                                     (setup.capacity.model_tokens_max / setup.policy.block_tokens + 2);
}

}  // namespace

TEST_CASE("skipping ahead over identical decode steps gives what one step at a time gives", "[property]") {
  for_each_seed(1500, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.engine.skip_ahead = true;
    const EventLog skipped = log_of(setup);
    setup.engine.skip_ahead = false;
    require_equal(skipped.entries(), log_of(setup).entries(), "skipping and stepping");
  });
}

TEST_CASE("walking every resident gives what the fast paths give", "[property]") {
  for_each_seed(1500, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.scheduler = {draw.chance(0.5), true};
    const EventLog fast = log_of(setup);
    setup.scheduler = {draw.chance(0.5), false};
    require_equal(fast.entries(), log_of(setup).entries(), "fast paths and walks");
  });
}

TEST_CASE("the same setup gives the same run", "[property]") {
  for_each_seed(100, [](Draw& draw) {
    const Setup setup = draw_setup(draw);
    require_equal(log_of(setup).entries(), log_of(setup).entries(), "two runs");
  });
}

TEST_CASE("recorded step durations bring the same plans back, whether ends are known or waited for",
          "[property]") {
  for_each_seed(400, [](Draw& draw) {
    // Whoever waits for a step hears of a refusal only when it ends, and so do those who come after it.
    Traits traits;
    traits.closed_loop = draw.chance(0.5);
    const Setup setup = draw_setup(draw, traits);
    const EventLog original = log_of(setup);
    for (const bool joins : {false, true}) {
      if (joins && traits.closed_loop) continue;
      Stage stage(setup);
      ReplayExecutor replay(setup, original.durations(), joins);
      EventLog log;
      LAW(stage.run(replay, log).drained);
      require_equal(original.entries(), log.entries(), joins ? "run and joined replay" : "run and replay");
    }
  });
}

TEST_CASE("a cap on chunks that no prompt reaches is no cap, and an endless budget no budget", "[property]") {
  for_each_seed(400, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.policy.chunked = setup.policy.form != Form::prefill_exclusive || setup.policy.take != Take::chunk;
    setup.policy.batch_tokens_max = 0;
    setup.policy.chunk_tokens_max = 0;
    const EventLog none = log_of(setup);
    setup.policy.chunk_tokens_max = setup.policy.chunked ? setup.capacity.model_tokens_max : 0;
    setup.policy.batch_tokens_max = setup.capacity.model_tokens_max * (setup.policy.sequences_max + 1);
    require_equal(none.entries(), log_of(setup).entries(), "no limit and one that is never reached");
    setup.policy.chunk_tokens_max = 0;
    setup.policy.batch_tokens_max = 0;
    setup.policy.chunked = false;
    require_equal(none.entries(), log_of(setup).entries(), "chunks as long as prompts and whole prompts");
  });
}

TEST_CASE("a prefix cache without shared prefixes and without preemptions is no cache", "[property]") {
  for_each_seed(400, [](Draw& draw) {
    Traits traits;
    traits.sharing = false;
    Setup setup = draw_setup(draw, traits);
    setup.policy.prefix_cache = false;
    // Numbered blocks always come back when the step that may touch them has ended.
    setup.policy.deferred_frees = true;
    const EventLog without = log_of(setup);
    setup.policy.prefix_cache = true;
    if (!valid(setup.policy) || has_preemptions(without)) return;
    require_equal(without.entries(), log_of(setup).entries(), "without and with a cache");
  });
}

TEST_CASE("with memory for all, what is reserved and what is taken does not matter", "[property]") {
  for_each_seed(300, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.policy.place = Place::paged;
    setup.policy.prefix_cache = false;
    setup.policy.release_at_batch_end = false;
    setup.policy.watermark = 0;
    widen(setup);
    setup.policy.reserve = Reserve::chunk;
    setup.policy.take = setup.policy.form == Form::prefill_exclusive ? Take::known : Take::chunk;
    const EventLog chunks = log_of(setup);
    setup.policy.reserve = draw.pick({Reserve::prompt_and_max, Reserve::max_len});
    setup.policy.take = draw.pick({Take::chunk, Take::known, Take::reserved});
    require_equal(chunks.entries(), log_of(setup).entries(), "reservations");
  });
}

TEST_CASE("with one sequence at a time, the phases of a step do not matter", "[property]") {
  for_each_seed(300, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    setup.policy.sequences_max = 1;
    setup.policy.form = Form::list_order;
    const EventLog listed = log_of(setup);
    setup.policy.form = draw.pick({Form::decodes_first, Form::prefill_exclusive});
    require_equal(listed.entries(), log_of(setup).entries(), "forms");
  });
}

#include "tests/support/run_laws.hpp"

#include <algorithm>
#include <map>

namespace foretoken::laws {
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

void scale(Duration& d, std::int64_t factor) {
  if (d != kForever) d *= factor;
}

Setup scaled(Setup setup, std::int64_t c) {
  Prices& p = setup.prices;
  for (std::int64_t* price : {&p.step, &p.chunk_token, &p.chunk_context, &p.decode_row, &p.context_token,
                              &p.padding_token, &p.dead_row, &p.copy, &p.copied_block})
    *price *= c;
  scale(setup.policy.join_timeout, c);
  scale(setup.policy.overtake_age_max, c);
  for (Item& item : setup.items) {
    item.offer.request.arrival = Time{item.offer.request.arrival.time_since_epoch() * c};
    scale(item.think, c);
    scale(item.offer.patience, c);
    scale(item.offer.cancel_after, c);
  }
  return setup;
}

}  // namespace

void skipping_is_stepping(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  setup.engine.skip_ahead = true;
  const EventLog skipped = run(setup);
  setup.engine.skip_ahead = false;
  require_equal(skipped.entries(), run(setup).entries(), "skipping and stepping");
}

void fast_paths_are_walks(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  setup.scheduler = {draw.chance(0.5), true};
  const EventLog fast = run(setup);
  setup.scheduler = {draw.chance(0.5), false};
  require_equal(fast.entries(), run(setup).entries(), "fast paths and walks");
}

void runs_repeat(Draw& draw, const Runner& run) {
  const Setup setup = draw_setup(draw);
  const EventLog first = run(setup);
  require_equal(first.entries(), run(setup).entries(), "two runs");
}

void records_replay(Draw& draw, const std::function<void(std::vector<Duration>&)>& kept) {
  // Whoever waits for a step hears of a refusal only when it ends, and so do those who come after it.
  Traits traits;
  traits.closed_loop = draw.chance(0.5);
  const Setup setup = draw_setup(draw, traits);
  const EventLog original = log_of(setup);
  std::vector<Duration> durations = original.durations();
  if (kept) kept(durations);
  for (const bool joins : {false, true}) {
    if (joins && traits.closed_loop) continue;
    Stage stage(setup);
    ReplayExecutor replay(setup, durations, joins);
    EventLog log;
    LAW(stage.run(replay, log).drained);
    require_equal(original.entries(), log.entries(), joins ? "run and joined replay" : "run and replay");
  }
}

void endless_limits_are_none(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  setup.policy.chunked = setup.policy.form != Form::prefill_exclusive || setup.policy.take != Take::chunk;
  setup.policy.batch_tokens_max = 0;
  setup.policy.chunk_tokens_max = 0;
  const EventLog none = run(setup);
  setup.policy.chunk_tokens_max = setup.policy.chunked ? setup.capacity.model_tokens_max : 0;
  setup.policy.batch_tokens_max = setup.capacity.model_tokens_max * (setup.policy.sequences_max + 1);
  require_equal(none.entries(), run(setup).entries(), "no limit and one that is never reached");
  setup.policy.chunk_tokens_max = 0;
  setup.policy.batch_tokens_max = 0;
  setup.policy.chunked = false;
  require_equal(none.entries(), run(setup).entries(), "chunks as long as prompts and whole prompts");
}

void nothing_shared_is_no_cache(Draw& draw, const Runner& run) {
  Traits traits;
  traits.sharing = false;
  Setup setup = draw_setup(draw, traits);
  setup.policy.prefix_cache = false;
  // Numbered blocks always come back when the step that may touch them has ended.
  setup.policy.deferred_frees = true;
  const EventLog without = run(setup);
  setup.policy.prefix_cache = true;
  if (!valid(setup.policy) || has_preemptions(without)) return;
  require_equal(without.entries(), run(setup).entries(), "without and with a cache");
}

void memory_for_all_is_endless(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  setup.policy.place = Place::paged;
  setup.policy.prefix_cache = false;
  setup.policy.release_at_batch_end = false;
  setup.policy.watermark = 0;
  widen(setup);
  setup.policy.reserve = Reserve::chunk;
  setup.policy.take = setup.policy.form == Form::prefill_exclusive ? Take::known : Take::chunk;
  const EventLog chunks = run(setup);
  setup.policy.reserve = draw.pick({Reserve::prompt_and_max, Reserve::max_len});
  setup.policy.take = draw.pick({Take::chunk, Take::known, Take::reserved});
  require_equal(chunks.entries(), run(setup).entries(), "reservations");
}

void one_at_a_time_has_no_phases(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  setup.policy.sequences_max = 1;
  setup.policy.form = Form::list_order;
  const EventLog listed = run(setup);
  setup.policy.form = draw.pick({Form::decodes_first, Form::prefill_exclusive});
  require_equal(listed.entries(), run(setup).entries(), "forms");
}

void times_scale(Draw& draw, const Runner& run) {
  const Setup setup = draw_setup(draw);
  const std::int64_t c = draw.pick({2, 7, 1000});
  require_equal(run(setup).moved(c, Duration{}), run(scaled(setup, c)).entries(), "scaled times");
}

void times_shift(Draw& draw, const Runner& run) {
  Setup setup = draw_setup(draw);
  const Duration shift{draw.between(1, 1000000)};
  const EventLog original = run(setup);
  for (Item& item : setup.items) item.offer.request.arrival += shift;
  require_equal(original.moved(1, shift), run(setup).entries(), "shifted times");
}

void fleet_of_one_is_the_engine(Draw& draw, const Runner& through) {
  const Setup setup = draw_setup(draw);
  require_equal(through(setup).entries(), log_of(setup).entries(), "fleet of one and engine");
}

void lengths_are_unknown(Draw& draw, const Runner& run) {
  // Only open loops: there the item of a request is the one of its number.
  Traits traits;
  traits.closed_loop = false;
  Setup setup = draw_setup(draw, traits);
  std::stable_sort(setup.items.begin(), setup.items.end(), [](const Item& a, const Item& b) {
    return a.offer.request.arrival < b.offer.request.arrival;
  });
  const std::vector<EventLog::Entry> before = run(setup).entries();
  if (before.empty()) return;
  const std::int64_t moment =
      before[static_cast<std::size_t>(draw.between(0, static_cast<std::int64_t>(before.size()) - 1))][2];
  std::int64_t steps = 0;
  std::map<std::int64_t, bool> admitted, ended;
  const auto is_past = [&](const EventLog::Entry& entry) { return entry[2] <= moment; };
  for (const EventLog::Entry& entry : before) {
    if (!is_past(entry)) continue;
    steps += entry[0] == 's';
    if (entry[0] == 'a') admitted[entry[3]] = true;
    if (entry[0] == 'e') ended[entry[3]] = true;
  }
  for (std::size_t i = 0; i < setup.items.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i);
    std::int32_t& length = setup.items[i].offer.output_tokens;
    if (length == 0 || ended.contains(id) || draw.chance(0.3)) continue;
    // Nobody has got more tokens than there were steps.
    length = draw.small(1, 9) + (admitted.contains(id) ? static_cast<std::int32_t>(steps) : 0);
  }
  std::vector<EventLog::Entry> past, now;
  std::copy_if(before.begin(), before.end(), std::back_inserter(past), is_past);
  const std::vector<EventLog::Entry> after = run(setup).entries();
  std::copy_if(after.begin(), after.end(), std::back_inserter(now), is_past);
  require_equal(past, now, "answers of other lengths");
}

}  // namespace foretoken::laws

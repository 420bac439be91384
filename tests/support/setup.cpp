#include "tests/support/setup.hpp"

#include <algorithm>
#include <sstream>

namespace foretoken::laws {
namespace {

void draw_memory(Draw& draw, Policy& p) {
  p.reserve = draw.pick({Reserve::chunk, Reserve::known, Reserve::prompt_and_max, Reserve::max_len});
  p.take = draw.pick({Take::chunk, Take::known, Take::reserved});
  p.watermark = draw.pick({0.0, 0.0, 0.01, 0.1, 0.3});
  p.watermark_only_when_busy = draw.chance(0.5);
  p.place = draw.chance(0.8) ? Place::paged : Place::contiguous;
  p.block_tokens = draw.pick({1, 2, 3, 4, 8, 16});
  p.prefix_cache = draw.chance(0.4);
  p.null_blocks = draw.small(0, 1);
  p.release_at_batch_end = draw.chance(0.3);
  p.victim = draw.pick({Victim::last_admitted, Victim::lowest_priority});
  p.preempt = draw.pick({PreemptMode::none, PreemptMode::recompute, PreemptMode::swap});
  p.swapped_first = draw.chance(0.7);
}

void draw_batch(Draw& draw, Policy& p, std::int64_t grid) {
  p.order = draw.pick(
      {Order::fcfs, Order::fcfs, Order::priority, Order::shortest_prompt, Order::shortest_predicted});
  p.sequences_max = draw.pick({1, 2, 3, 4, 8, 16});
  p.join = draw.pick({Join::any, Join::any, Join::when_empty, Join::count_or_timeout});
  p.join_count = draw.small(1, 5);
  p.join_timeout = Duration{grid * draw.between(0, 60)};
  p.head_of_line = draw.pick({HeadOfLine::stop, HeadOfLine::bounded_skip});
  p.overtakes_max = draw.small(0, 4);
  p.overtake_age_max = draw.chance(0.5) ? kForever : Duration{grid * draw.between(1, 200)};
  p.freeze_after_preemption = draw.chance(0.5);
  p.form = draw.pick({Form::list_order, Form::decodes_first, Form::prefill_exclusive});
  p.batch_tokens_max = draw.chance(0.2) ? 0 : p.sequences_max + draw.small(0, 40);
  p.chunked = draw.chance(0.7);
  p.chunk_tokens_max = draw.chance(0.6) ? 0 : draw.small(1, 20);
  p.padded = draw.chance(0.3);
  p.delivery = draw.pick({Delivery::streamed, Delivery::request_end, Delivery::batch_end});
  p.depth = draw.small(0, 1);
  p.deferred_frees = draw.chance(0.5);
}

std::int64_t grid_of(const Prices& prices) { return std::max<std::int64_t>(1, prices.step / 4); }

}  // namespace

bool valid(const Policy& p) {
  const bool reserves_all = p.reserve == Reserve::prompt_and_max || p.reserve == Reserve::max_len;
  // What never grows must have been taken whole, and what grows needs somebody who yields.
  if (p.take == Take::reserved && !reserves_all) return false;
  if (p.preempt == PreemptMode::none && p.take != Take::reserved) return false;
  if (p.place == Place::contiguous && p.take != Take::reserved) return false;
  // Memory kept for the dead is memory that the living cannot grow into.
  if (p.release_at_batch_end && p.take != Take::reserved) return false;
  if (p.prefix_cache && (p.place != Place::paged || p.take == Take::reserved)) return false;
  if (p.preempt == PreemptMode::swap && (p.place != Place::paged || p.prefix_cache)) return false;
  if (p.batch_tokens_max > 0 && p.batch_tokens_max < p.sequences_max) return false;
  // Prompts that run alone and may still fail to grow would keep the decodes, whose ends they need, waiting
  // for ever.
  if (p.form == Form::prefill_exclusive && p.chunked && p.take == Take::chunk) return false;
  // A whole prompt never fits under a cap on chunks.
  if (!p.chunked && p.chunk_tokens_max > 0) return false;
  return p.delivery != Delivery::batch_end || p.release_at_batch_end;
}

Policy draw_policy(Draw& draw) {
  const std::int64_t grid = 250;
  for (;;) {
    Policy policy;
    draw_memory(draw, policy);
    draw_batch(draw, policy, grid);
    if (valid(policy)) return policy;
  }
}

Capacity draw_capacity(Draw& draw, const Policy& policy) {
  Capacity capacity;
  const std::int64_t tokens = draw.between(8, draw.chance(0.5) ? 120 : 400);
  capacity.kv_blocks = policy.null_blocks + 2 + tokens / policy.block_tokens;
  capacity.host_blocks = draw.between(0, capacity.kv_blocks);
  capacity.model_tokens_max = draw.small(4, 120);
  capacity.transfers_overlap = draw.chance(0.5);
  return capacity;
}

Prices draw_prices(Draw& draw) {
  Prices prices;
  prices.step = 1000;
  prices.chunk_token = draw.pick({0, 10, 250});
  prices.chunk_context = draw.pick({0, 0, 1});
  prices.decode_row = draw.pick({0, 0, 50, 250});
  prices.context_token = draw.pick({0, 0, 1, 250});
  prices.padding_token = draw.pick({0, 5});
  prices.dead_row = draw.pick({0, 50});
  prices.copy = draw.pick({0, 500});
  prices.copied_block = draw.pick({0, 250, 1000});
  prices.window_max = draw.pick({1, 3, 1 << 20, 1 << 20});
  return prices;
}

namespace {

Item draw_item(Draw& draw, const Capacity& capacity, std::int64_t grid, bool few_long) {
  Item item;
  Request& r = item.offer.request;
  const std::int32_t longest = capacity.model_tokens_max;
  const double kind = static_cast<double>(draw.between(0, 99)) / 100;
  // Short ones, long ones, and whatever fits just so or just not.
  if (few_long && kind < 0.9)
    r.prompt_tokens = draw.small(1, 4);
  else if (kind < 0.5)
    r.prompt_tokens = draw.small(1, std::max(1, longest / 4));
  else
    r.prompt_tokens = draw.small(1, longest + 1);
  item.offer.output_tokens = draw.chance(0.25) ? draw.small(0, 1) : draw.small(1, std::max(1, longest / 3));
  if (draw.chance(0.6)) r.max_new_tokens = std::max(0, item.offer.output_tokens + draw.small(-2, 6));
  if (draw.chance(0.1)) r.max_new_tokens = std::max(0, longest - r.prompt_tokens);
  r.predicted_output_tokens =
      draw.chance(0.8) ? std::max(0, item.offer.output_tokens + draw.small(-3, 3)) : 0;
  r.priority = draw.small(0, 3);
  item.think = Duration{grid * draw.between(0, 20)};
  return item;
}

void draw_leaving(Draw& draw, Item& item, std::int64_t grid) {
  if (draw.chance(0.1)) item.offer.patience = Duration{grid * draw.between(0, 60)};
  if (draw.chance(0.1)) item.offer.cancel_after = Duration{grid * draw.between(0, 200)};
}

void draw_hashes(Draw& draw, Item& item, const Policy& policy) {
  if (draw.chance(0.2)) return;
  Request& r = item.offer.request;
  r.hash_block_tokens = draw.pick({policy.block_tokens, policy.block_tokens, 2 * policy.block_tokens});
  const std::int32_t pieces = (r.prompt_tokens + r.hash_block_tokens - 1) / r.hash_block_tokens;
  const std::int32_t shared = draw.small(0, pieces);
  // Texts hashed in pieces of different lengths are different.
  const auto family = static_cast<std::uint64_t>(draw.between(1, 3) * 1000 + r.hash_block_tokens);
  for (std::int32_t p = 0; p < pieces; ++p)
    item.hashes.push_back(p < shared ? mix(family * 1000 + static_cast<std::uint64_t>(p))
                                     : mix(static_cast<std::uint64_t>(draw.between(0, 1 << 30)) + 5000));
}

}  // namespace

std::vector<Item> draw_items(Draw& draw, const Capacity& capacity, const Policy& policy, const Prices& prices,
                             const Traits& traits) {
  const std::int64_t grid = grid_of(prices);
  const bool few_long = draw.chance(0.2);
  const std::int64_t gap_max = draw.pick({0, 2, 10, 60});
  const double loops = traits.closed_loop ? draw.pick({0.0, 0.0, 0.4}) : 0.0;
  const bool leaving = traits.leaving && draw.chance(0.4);
  std::vector<Item> items;
  std::int64_t at = 0;
  const std::int32_t count = draw.requests(1, traits.requests_max);
  for (std::int32_t i = 0; i < count; ++i) {
    Item item = draw_item(draw, capacity, grid, few_long);
    if (i > 0 && draw.chance(0.7)) at += grid * draw.between(0, gap_max);
    item.offer.request.arrival = Time{Duration{at}};
    if (i > 0 && draw.chance(loops)) item.after = draw.small(0, i - 1);
    if (leaving) draw_leaving(draw, item, grid);
    if (traits.sharing && policy.prefix_cache) draw_hashes(draw, item, policy);
    items.push_back(std::move(item));
  }
  return items;
}

Setup draw_setup(Draw& draw, const Traits& traits) {
  Setup setup;
  setup.policy = draw_policy(draw);
  setup.capacity = draw_capacity(draw, setup.policy);
  setup.prices = draw_prices(draw);
  setup.items = draw_items(draw, setup.capacity, setup.policy, setup.prices, traits);
  setup.engine.skip_ahead = draw.chance(0.7);
  setup.scheduler.fast_paths = draw.chance(0.7);
  draw.note(describe(setup.policy, setup.capacity));
  draw.note(describe(setup.items));
  return setup;
}

std::string describe(const Policy& p, const Capacity& c) {
  std::ostringstream out;
  const auto number = [](auto value) { return static_cast<long long>(value); };
  out << "order " << number(p.order) << " sequences_max " << p.sequences_max << " reserve "
      << number(p.reserve) << " take " << number(p.take) << " watermark " << p.watermark
      << (p.watermark_only_when_busy ? " busy" : "") << " join " << number(p.join) << '/' << p.join_count
      << '/' << p.join_timeout.count() << " head_of_line " << number(p.head_of_line) << '/' << p.overtakes_max
      << '/' << p.overtake_age_max.count() << " freeze " << p.freeze_after_preemption << " swapped_first "
      << p.swapped_first << " form " << number(p.form) << " batch_tokens_max " << p.batch_tokens_max
      << " chunked " << p.chunked << '/' << p.chunk_tokens_max << " padded " << p.padded << " place "
      << number(p.place) << " block_tokens " << p.block_tokens << " prefix_cache " << p.prefix_cache
      << " null " << p.null_blocks << " release_at_batch_end " << p.release_at_batch_end << " victim "
      << number(p.victim) << " preempt " << number(p.preempt) << " delivery " << number(p.delivery)
      << " depth " << p.depth << " deferred_frees " << p.deferred_frees << "\nblocks " << c.kv_blocks
      << " host " << c.host_blocks << " model_tokens_max " << c.model_tokens_max << " overlap "
      << c.transfers_overlap;
  return out.str();
}

std::string describe(const std::vector<Item>& items) {
  std::ostringstream out;
  out << items.size() << " requests";
  for (std::size_t i = 0; i < std::min<std::size_t>(items.size(), 24); ++i) {
    const Offer& o = items[i].offer;
    out << "\n  at " << picoseconds(o.request.arrival) << " prompt " << o.request.prompt_tokens << " output "
        << o.output_tokens << " max " << o.request.max_new_tokens << " priority " << o.request.priority;
    if (items[i].after >= 0) out << " after " << items[i].after << "+" << items[i].think.count();
    if (o.patience != kForever) out << " patience " << o.patience.count();
    if (o.cancel_after != kForever) out << " cancel " << o.cancel_after.count();
  }
  return out.str();
}

}  // namespace foretoken::laws

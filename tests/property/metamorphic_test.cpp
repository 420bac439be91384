#include "tests/catch.hpp"
#include "tests/support/stage.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

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

TEST_CASE("all costs and gaps times c: all times times c, exactly", "[property]") {
  for_each_seed(300, [](Draw& draw) {
    const Setup setup = draw_setup(draw);
    const std::int64_t c = draw.pick({2, 7, 1000});
    require_equal(log_of(setup).moved(c, Duration{}), log_of(scaled(setup, c)).entries(), "scaled times");
  });
}

TEST_CASE("all arrivals shifted: all times shifted", "[property]") {
  for_each_seed(300, [](Draw& draw) {
    Setup setup = draw_setup(draw);
    const Duration shift{draw.between(1, 1000000)};
    const EventLog original = log_of(setup);
    for (Item& item : setup.items) item.offer.request.arrival += shift;
    require_equal(original.moved(1, shift), log_of(setup).entries(), "shifted times");
  });
}

TEST_CASE("a random stream is a function of seed, stream and position alone", "[property]") {
  for_each_seed(200, [](Draw& draw) {
    const auto seed = static_cast<std::uint64_t>(draw.between(0, 1 << 30));
    const auto stream = static_cast<std::uint64_t>(draw.between(0, 100));
    const RandomStream first(seed, stream);
    std::vector<double> alone;
    for (std::uint64_t i = 0; i < 8; ++i) alone.push_back(first.gamma(i, 0.3 + static_cast<double>(i)));
    // Another stream in between, and another order, disturb nothing.
    const RandomStream second(seed, stream);
    const RandomStream new_one(seed, stream + 1);
    for (std::uint64_t i = 8; i-- > 0;) {
      LAW(new_one.bits(i) != first.bits(i));
      LAW(second.gamma(i, 0.3 + static_cast<double>(i)) == alone[static_cast<std::size_t>(i)], i);
    }
  });
}

#include "sim/fleet/event_queue.hpp"

#include <algorithm>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

TEST_CASE("the queue gives events in the order of time, rank and id, whatever moved in between",
          "[property]") {
  for_each_seed(200, [](Draw& draw) {
    EventQueue queue;
    const std::int32_t count = draw.requests(1, 12);
    std::vector<Rank> ranks;
    std::vector<Time> times(static_cast<std::size_t>(count), kNever);
    for (std::int32_t i = 0; i < count; ++i) {
      ranks.push_back(draw.pick({Rank::engine, Rank::arrival}));
      LAW(queue.add(ranks.back()) == static_cast<std::uint32_t>(i));
    }
    LAW(queue.first_time() == kNever);
    for (int turn = 0; turn < 60; ++turn) {
      const auto moved = static_cast<std::uint32_t>(draw.between(0, count - 1));
      times[moved] = draw.chance(0.2) ? kNever : Time{Duration{draw.between(0, 6)}};
      queue.update(moved, times[moved]);
      std::uint32_t first = 0;
      for (std::uint32_t i = 1; i < times.size(); ++i)
        if (std::tie(times[i], ranks[i], i) < std::tie(times[first], ranks[first], first)) first = i;
      LAW(queue.first() == first && queue.first_time() == times[first], queue.first(), first);
    }
  });
}

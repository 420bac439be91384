#include "sim/core/tick_wheel.hpp"

#include <map>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

/// The wheel in plain words.
class SortedTicks {
 public:
  void insert(std::uint32_t id, std::int64_t tick) { by_tick_.emplace(tick, id); }
  void erase(std::uint32_t id, std::int64_t tick) {
    for (auto [entry, end] = by_tick_.equal_range(tick); entry != end; ++entry)
      if (entry->second == id) return void(by_tick_.erase(entry));
  }
  std::set<std::uint32_t> pop(std::int64_t tick) {
    std::set<std::uint32_t> ids;
    for (auto [entry, end] = by_tick_.equal_range(tick); entry != end; ++entry) ids.insert(entry->second);
    by_tick_.erase(tick);
    return ids;
  }
  std::int64_t next(std::int64_t from, std::int64_t limit) const {
    const auto entry = by_tick_.upper_bound(from);
    return entry == by_tick_.end() || entry->first > limit ? limit + 1 : entry->first;
  }

 private:
  std::multimap<std::int64_t, std::uint32_t> by_tick_;
};

void compare_random_operations(Draw& draw) {
  constexpr std::uint32_t kIds = 40;
  TickWheel wheel;
  wheel.grow(kIds);
  SortedTicks plain;
  std::int64_t now = draw.pick({std::int64_t{0}, TickWheel::kLength - 5, std::int64_t{1} << 40});
  // Near ones, ones that share a bucket with others a turn away, and ones at a distance.
  const auto some_tick = [&] {
    return now + draw.pick({draw.between(0, 5), draw.between(0, 200), draw.between(0, 5000),
                            TickWheel::kLength + draw.between(0, 3), 3 * TickWheel::kLength});
  };
  for (int operation = 0; operation < 300; ++operation) {
    const auto id = static_cast<std::uint32_t>(draw.between(0, kIds - 1));
    if (draw.chance(0.5)) {
      if (wheel.contains(id)) {
        plain.erase(id, wheel.tick_of(id));
        wheel.erase(id);
      } else {
        const std::int64_t tick = some_tick();
        wheel.insert(id, tick);
        plain.insert(id, tick);
        LAW(wheel.contains(id) && wheel.tick_of(id) == tick);
      }
      continue;
    }
    const std::int64_t limit = now + draw.between(0, draw.chance(0.5) ? 70 : TickWheel::kLength);
    const std::int64_t next = wheel.next(now, limit);
    LAW(next == plain.next(now, limit), now, limit, next);
    now = next;
    std::set<std::uint32_t> taken;
    wheel.pop(now,
              [&](std::uint32_t popped) { LAW(taken.insert(popped).second && !wheel.contains(popped)); });
    LAW(taken == plain.pop(now), now);
  }
}

}  // namespace

TEST_CASE("the timing wheel does what a sorted multimap does", "[property]") {
  for_each_seed(200, compare_random_operations);
}

TEST_CASE("ticks a whole turn apart share a bucket and are told apart") {
  TickWheel wheel;
  wheel.grow(4);
  wheel.insert(0, 10);
  wheel.insert(1, 10 + TickWheel::kLength);
  wheel.insert(2, 10);
  CHECK(wheel.next(9, 20) == 10);
  std::multiset<std::uint32_t> taken;
  wheel.pop(10, [&](std::uint32_t id) { taken.insert(id); });
  CHECK(taken == std::multiset<std::uint32_t>{0, 2});
  CHECK(wheel.contains(1));
  // From 10 on, the next is one turn away, which is as far as the wheel can look.
  CHECK(wheel.next(10, 9 + TickWheel::kLength) == 10 + TickWheel::kLength);
  CHECK(wheel.next(10, 10 + TickWheel::kLength) == 10 + TickWheel::kLength);
  wheel.erase(1);
  CHECK(wheel.next(10, 10 + TickWheel::kLength) == 11 + TickWheel::kLength);
}

TEST_CASE("what is popped may be put back at another tick at once") {
  TickWheel wheel;
  wheel.grow(2);
  wheel.insert(0, 5);
  wheel.insert(1, 5);
  wheel.pop(5, [&](std::uint32_t id) { wheel.insert(id, 5 + TickWheel::kLength * (id + 1)); });
  CHECK(wheel.tick_of(0) == 5 + TickWheel::kLength);
  CHECK(wheel.tick_of(1) == 5 + 2 * TickWheel::kLength);
}

TEST_CASE("putting an id in twice or taking an absent one out is a fault of the caller") {
  const auto insert_twice = [] {
    TickWheel wheel;
    wheel.grow(1);
    wheel.insert(0, 3);
    wheel.insert(0, 4);
  };
  const auto erase_absent = [] {
    TickWheel wheel;
    wheel.grow(1);
    wheel.erase(0);
  };
  CHECK(fate_of(insert_twice) == Fate::aborted);
  CHECK(fate_of(erase_absent) == Fate::aborted);
}

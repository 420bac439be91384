#include "sim/core/waiting_queue.hpp"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

using QueueEntry = WaitingQueue::Entry;

std::vector<std::int64_t> drain(WaitingQueue& queue, const std::set<std::int64_t>& dead = {}) {
  std::vector<std::int64_t> tickets;
  while (!queue.empty()) {
    const QueueEntry entry = queue.front([&](const QueueEntry& e) { return !dead.contains(e.ticket); });
    tickets.push_back(entry.ticket);
    queue.pop();
  }
  return tickets;
}

/// A keyed or first-come queue against a sorted vector or a deque, with deaths inside.
void compare_with_sorting(Draw& draw) {
  const bool keyed = draw.chance(0.5);
  WaitingQueue queue(keyed);
  std::deque<QueueEntry> plain;
  std::set<std::int64_t> dead;
  std::int64_t last = 0, first = 0;
  const auto sort = [&] {
    if (!keyed) return;
    std::sort(plain.begin(), plain.end(), [](const QueueEntry& a, const QueueEntry& b) {
      return a.key != b.key ? a.key < b.key : a.ticket < b.ticket;
    });
  };
  for (int operation = 0; operation < 400; ++operation) {
    LAW(queue.size() == plain.size() && queue.empty() == plain.empty());
    const std::int64_t kind = draw.between(0, 9);
    if (kind < 5) {
      const bool front = draw.chance(0.3);
      QueueEntry entry{keyed ? draw.between(-3, 3) : 0, 0, Handle{static_cast<std::uint32_t>(operation)}};
      entry.ticket = front ? --first : ++last;
      queue.push(entry, front);
      if (front)
        plain.push_front(entry);
      else
        plain.push_back(entry);
      sort();
    } else if (!plain.empty() && kind < 8) {
      const QueueEntry entry = queue.front([&](const QueueEntry& e) { return !dead.contains(e.ticket); });
      LAW(entry.ticket == plain.front().ticket && entry.key == plain.front().key &&
          entry.request == plain.front().request);
      queue.pop();
      plain.pop_front();
    } else if (!plain.empty()) {
      const auto at = draw.between(0, static_cast<std::int64_t>(plain.size()) - 1);
      dead.insert(plain[static_cast<std::size_t>(at)].ticket);
      plain.erase(plain.begin() + at);
      queue.forget();
    }
    std::set<std::int64_t> visited;
    queue.for_each([&](const QueueEntry& e) {
      if (!dead.contains(e.ticket)) LAW(visited.insert(e.ticket).second);
    });
    LAW(visited.size() == plain.size());
  }
}

}  // namespace

TEST_CASE("the waiting queue is in the order that sorting gives", "[property]") {
  for_each_seed(100, compare_with_sorting);
}

TEST_CASE("without keys, first come is first served, and what is put to the front goes before all") {
  WaitingQueue queue(false);
  for (std::int64_t ticket = 1; ticket <= 200; ++ticket) queue.push({0, ticket, Handle{0}});
  queue.push({0, -1, Handle{0}}, true);
  queue.push({0, -2, Handle{0}}, true);
  const std::vector<std::int64_t> tickets = drain(queue);
  REQUIRE(tickets.size() == 202u);
  CHECK((tickets[0] == -2 && tickets[1] == -1 && tickets[2] == 1 && tickets.back() == 200));
}

TEST_CASE("with keys, the least key is first and ties go to the lower ticket, front or not") {
  WaitingQueue queue(true);
  queue.push({5, 1, Handle{0}});
  queue.push({2, 4, Handle{0}});
  queue.push({2, 3, Handle{0}}, true);
  queue.push({7, 0, Handle{0}}, true);
  queue.push({-1, 9, Handle{0}});
  CHECK(drain(queue) == std::vector<std::int64_t>{9, 3, 4, 1, 0});
}

TEST_CASE("entries that died inside do not count and do not come out") {
  for (const bool keyed : {false, true}) {
    WaitingQueue queue(keyed);
    for (std::int64_t ticket = 1; ticket <= 6; ++ticket) queue.push({0, ticket, Handle{0}});
    for (int deaths = 0; deaths < 3; ++deaths) queue.forget();
    CHECK(queue.size() == 3u);
    CHECK(drain(queue, {1, 4, 6}) == std::vector<std::int64_t>{2, 3, 5});
  }
}

#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/core/time.hpp"

namespace foretoken {

/// What happens first at one time. The order of these ranks is the order of events: a step that has ended is
/// taken in before the arrivals of that moment, so that whoever waits for its end may answer at once.
enum class Rank : std::uint8_t { engine, arrival };

/// The next event of each actor, in a total order by (time, rank, id). An actor has one entry, which moves
/// when its plans change, so that no stale event is ever popped. A tournament: each node of a tree knows
/// which actor below it is first, so that a change costs one comparison per level.
class EventQueue {
 public:
  /// Actors are numbered from 0 in the order of these calls.
  std::uint32_t add(Rank rank) {
    const auto id = static_cast<std::uint32_t>(actors_.size());
    actors_.push_back({kNever, std::uint64_t{static_cast<std::uint8_t>(rank)} << 32 | id});
    first_of_.assign(2 * actors_.size(), id);
    for (std::uint32_t actor = 0; actor <= id; ++actor) first_of_[actors_.size() + actor] = actor;
    for (std::size_t node = id; node > 0; --node) play(node);
    return id;
  }
  /// The actor's next event is at `time` from now on.
  void update(std::uint32_t actor, Time time) {
    if (actors_[actor].time == time) return;
    actors_[actor].time = time;
    for (std::size_t node = (actors_.size() + actor) / 2; node > 0; node /= 2) play(node);
  }
  /// Time of the first event; kNever when there is none.
  Time first_time() const { return actors_[first()].time; }
  /// Who has it.
  std::uint32_t first() const { return first_of_[1]; }

 private:
  struct Actor {
    Time time{};
    std::uint64_t tie = 0;  // rank and id
  };
  void play(std::size_t node) {
    const std::uint32_t a = first_of_[2 * node];
    const std::uint32_t b = first_of_[2 * node + 1];
    const Actor& left = actors_[a];
    const Actor& right = actors_[b];
    first_of_[node] = left.time < right.time || (left.time == right.time && left.tie < right.tie) ? a : b;
  }
  std::vector<Actor> actors_;
  std::vector<std::uint32_t> first_of_;  // node 1 is the root, the children of n are 2n and 2n + 1
};

}  // namespace foretoken

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
/// when its plans change, so that no stale event is ever popped. A binary heap with positions.
class EventQueue {
 public:
  /// Actors are numbered from 0 in the order of these calls.
  std::uint32_t add(Rank rank) {
    const auto id = static_cast<std::uint32_t>(actors_.size());
    actors_.push_back({kNever, rank, static_cast<std::uint32_t>(heap_.size())});
    heap_.push_back(id);
    sift(actors_[id].position);
    return id;
  }
  /// The actor's next event is at `time` from now on.
  void update(std::uint32_t actor, Time time) {
    if (actors_[actor].time == time) return;
    actors_[actor].time = time;
    sift(actors_[actor].position);
  }
  /// Time of the first event; kNever when there is none.
  Time first_time() const { return actors_[heap_.front()].time; }
  /// Who has it.
  std::uint32_t first() const { return heap_.front(); }

 private:
  struct Actor {
    Time time{};
    Rank rank{};
    std::uint32_t position = 0;
  };
  bool before(std::uint32_t a, std::uint32_t b) const {
    if (actors_[a].time != actors_[b].time) return actors_[a].time < actors_[b].time;
    if (actors_[a].rank != actors_[b].rank) return actors_[a].rank < actors_[b].rank;
    return a < b;
  }
  void place(std::uint32_t position, std::uint32_t actor) {
    heap_[position] = actor;
    actors_[actor].position = position;
  }
  void sift(std::uint32_t position) {
    const std::uint32_t actor = heap_[position];
    while (position > 0 && before(actor, heap_[(position - 1) / 2])) {
      place(position, heap_[(position - 1) / 2]);
      position = (position - 1) / 2;
    }
    for (std::uint32_t child = 2 * position + 1; child < heap_.size(); child = 2 * position + 1) {
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], actor)) break;
      place(position, heap_[child]);
      position = child;
    }
    place(position, actor);
  }
  std::vector<Actor> actors_;
  std::vector<std::uint32_t> heap_;
};

}  // namespace foretoken

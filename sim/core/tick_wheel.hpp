#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/base/check.hpp"

namespace foretoken {

/// A timing wheel over decode ticks: which sequences reach a limit at which tick. Insert, erase and pop are
/// O(1); ticks further away than the wheel is long share buckets and are told apart by their exact value.
class TickWheel {
 public:
  TickWheel() { heads_.fill(kNone); }

  /// Makes room for ids below `count`.
  void grow(std::size_t count) {
    if (count > links_.size()) links_.resize(count);
  }
  bool contains(std::uint32_t id) const { return links_[id].tick != kAbsent; }
  std::int64_t tick_of(std::uint32_t id) const { return links_[id].tick; }

  /// Puts `id` at `tick`; it must not be in the wheel.
  void insert(std::uint32_t id, std::int64_t tick) {
    Link& link = links_[id];
    FT_CHECK(link.tick == kAbsent, id, tick);
    const std::uint32_t bucket = bucket_of(tick);
    link = {tick, heads_[bucket], kNone};
    if (link.next != kNone) links_[link.next].previous = id;
    heads_[bucket] = id;
    occupied_[bucket >> 6] |= std::uint64_t{1} << (bucket & 63);
  }
  /// Takes `id` out; it must be in the wheel.
  void erase(std::uint32_t id) {
    Link& link = links_[id];
    FT_CHECK(link.tick != kAbsent, id);
    const std::uint32_t bucket = bucket_of(link.tick);
    (link.previous == kNone ? heads_[bucket] : links_[link.previous].next) = link.next;
    if (link.next != kNone) links_[link.next].previous = link.previous;
    if (heads_[bucket] == kNone) occupied_[bucket >> 6] &= ~(std::uint64_t{1} << (bucket & 63));
    link.tick = kAbsent;
  }
  /// Removes every id at exactly `tick` and passes it to `take`, which may insert at other ticks but not
  /// erase.
  template <class Take>
  void pop(std::int64_t tick, Take take) {
    for (std::uint32_t id = heads_[bucket_of(tick)]; id != kNone;) {
      const std::uint32_t next = links_[id].next;
      if (links_[id].tick == tick) {
        erase(id);
        take(id);
      }
      id = next;
    }
  }
  /// The least tick in (`from`, `limit`] that has an id, or `limit + 1`. `limit - from` may not exceed the
  /// wheel.
  std::int64_t next(std::int64_t from, std::int64_t limit) const {
    for (std::int64_t tick = from + 1; tick <= limit;) {
      const std::uint32_t bucket = bucket_of(tick);
      const std::uint64_t word = occupied_[bucket >> 6] >> (bucket & 63);
      if (word == 0) {
        tick += 64 - (bucket & 63);
        continue;
      }
      tick += std::countr_zero(word);
      if (tick > limit) break;
      for (std::uint32_t id = heads_[bucket_of(tick)]; id != kNone; id = links_[id].next)
        if (links_[id].tick == tick) return tick;
      ++tick;
    }
    return limit + 1;
  }

  static constexpr std::int64_t kLength = 4096;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr std::int64_t kAbsent = -1;
  struct Link {
    std::int64_t tick = kAbsent;
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
  };
  static std::uint32_t bucket_of(std::int64_t tick) {
    return static_cast<std::uint32_t>(tick & (kLength - 1));
  }
  std::array<std::uint32_t, kLength> heads_;
  std::array<std::uint64_t, kLength / 64> occupied_{};
  std::vector<Link> links_;
};

}  // namespace foretoken

#include "sim/core/kv_pool.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

KvPool pool_of(std::int64_t blocks, const Policy& policy = {}, std::int64_t host_blocks = 0) {
  return {policy, {blocks, host_blocks, 1000, false}};
}

/// First fit, block by block.
class PlainRanges {
 public:
  explicit PlainRanges(std::int64_t blocks) : owners_(static_cast<std::size_t>(blocks), -1) {}
  std::int64_t largest() const {
    std::int64_t longest = 0, length = 0;
    for (const int owner : owners_) {
      length = owner < 0 ? length + 1 : 0;
      longest = std::max(longest, length);
    }
    return longest;
  }
  void take(int owner, std::int64_t blocks) {
    std::int64_t length = 0;
    for (std::size_t at = 0; at < owners_.size(); ++at) {
      length = owners_[at] < 0 ? length + 1 : 0;
      if (length < blocks) continue;
      for (std::size_t i = 0; i < static_cast<std::size_t>(blocks); ++i) owners_[at - i] = owner;
      return;
    }
  }
  void give(int owner) { std::replace(owners_.begin(), owners_.end(), owner, -1); }

 private:
  std::vector<int> owners_;
};

}  // namespace

TEST_CASE("blocks are taken and given back, and the watermark is what must stay") {
  KvPool pool = pool_of(10);
  CHECK((pool.usable() == 10 && pool.free() == 10));
  CHECK(pool.fits(10));
  CHECK_FALSE(pool.fits(11));
  pool.take(Slot{0}, 4);
  pool.take(Slot{1}, 3);
  CHECK(pool.free() == 3);
  CHECK(pool.fits(3));
  CHECK(pool.fits(2, 1));
  CHECK_FALSE(pool.fits(3, 1));
  // Who needs nothing does not care for a reserve.
  CHECK(pool.fits(0, 100));
  pool.take_many(2);
  CHECK(pool.free() == 1);
  pool.give_many(2);
  pool.give(Slot{0}, 4);
  pool.give(Slot{1}, 3);
  CHECK(pool.free() == 10);
}

TEST_CASE("null blocks hold nobody") {
  Policy policy;
  policy.null_blocks = 1;
  KvPool pool = pool_of(10, policy);
  CHECK((pool.usable() == 9 && pool.free() == 9));
  CHECK_FALSE(pool.fits(10));
  KvUse use;
  pool.take(Slot{0}, 9);
  pool.measure(use);
  CHECK((use.blocks_total == 9 && use.blocks_held == 9 && use.largest_free_range == 0));
  // A pool of null blocks only is no pool.
  CHECK(fate_of([&] { pool_of(1, policy); }) == Fate::aborted);
}

TEST_CASE("the host pool is a count of its own") {
  KvPool pool = pool_of(10, {}, 6);
  pool.host_take(4);
  CHECK((pool.host_free() == 2 && pool.free() == 10));
  KvUse use;
  pool.measure(use);
  CHECK((use.host_blocks_held == 4 && use.blocks_held == 0));
  pool.host_give(4);
  CHECK(pool.host_free() == 6);
  CHECK(fate_of([&] { pool.host_take(7); }) == Fate::aborted);
  CHECK(fate_of([&] { pool.host_give(1); }) == Fate::aborted);
}

TEST_CASE("taking more than is free or giving back too much is a fault of the caller") {
  KvPool pool = pool_of(4);
  CHECK(fate_of([&] { pool.take(Slot{0}, 5); }) == Fate::aborted);
  CHECK(fate_of([&] { pool.give(Slot{0}, 1); }) == Fate::aborted);
}

TEST_CASE("contiguous ranges: free blocks in pieces do not make a whole") {
  Policy policy;
  policy.place = Place::contiguous;
  KvPool pool = pool_of(10, policy);
  for (std::uint32_t slot = 0; slot < 5; ++slot) pool.take(Slot{slot}, 2);
  pool.give(Slot{1}, 2);
  pool.give(Slot{3}, 2);
  // Ranges 2..3 and 6..7 are free: four blocks, of which two hang together.
  CHECK(pool.free() == 4);
  CHECK(pool.fits(2));
  CHECK_FALSE(pool.fits(3));
  CHECK_FALSE(pool.fits(2, 3));
  KvUse use;
  pool.measure(use);
  CHECK((use.blocks_held == 6 && use.largest_free_range == 2));
  // Between them lies slot 2; when it goes, all three are one range.
  pool.give(Slot{2}, 2);
  CHECK(pool.fits(6));
}

TEST_CASE("ranges are found first fit and join with their neighbours, as block by block", "[property]") {
  for_each_seed(100, [](Draw& draw) {
    const std::int64_t blocks = draw.between(1, 60);
    constexpr int kSlots = 12;
    RangeAllocator ranges(blocks, kSlots);
    PlainRanges plain(blocks);
    bool held[kSlots] = {};
    for (int operation = 0; operation < 200; ++operation) {
      LAW(ranges.largest() == plain.largest(), ranges.largest(), plain.largest());
      const auto slot = static_cast<int>(draw.between(0, kSlots - 1));
      if (held[slot]) {
        ranges.give(Slot{static_cast<std::uint32_t>(slot)});
        plain.give(slot);
        held[slot] = false;
      } else if (const std::int64_t wanted = draw.between(1, 12); wanted <= plain.largest()) {
        ranges.take(Slot{static_cast<std::uint32_t>(slot)}, wanted);
        plain.take(slot, wanted);
        held[slot] = true;
      }
    }
  });
}

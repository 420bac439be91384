#include "sim/core/prefix_cache.hpp"

#include <algorithm>
#include <list>
#include <map>
#include <vector>

#include "sim/core/kv_pool.hpp"
#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

using Hashes = std::vector<std::uint64_t>;
using Table = std::vector<std::int32_t>;

Table table_of(const PrefixCache& cache, std::uint32_t slot) {
  const auto table = cache.table(Slot{slot});
  return {table.begin(), table.end()};
}

/// Takes blocks for all hashes from position `from` on and gives them these identities.
void fill(PrefixCache& cache, std::uint32_t slot, const Hashes& hashes, std::int32_t from = 0) {
  cache.take(Slot{slot}, static_cast<std::int32_t>(hashes.size()) - from);
  for (std::int32_t p = from; p < static_cast<std::int32_t>(hashes.size()); ++p)
    cache.seal(Slot{slot}, p, hashes[static_cast<std::size_t>(p)]);
}

}  // namespace

TEST_CASE("the blocks of an ended sequence are found again by the chain of their hashes") {
  PrefixCache cache(8, 4);
  fill(cache, 0, {1, 2, 3});
  CHECK(table_of(cache, 0) == Table{0, 1, 2});
  CHECK(cache.free_blocks() == 5);
  // Found while they are in use, and when they lie free.
  CHECK(cache.match(Hashes{1, 2, 3, 4}) == 3);
  CHECK(cache.match_free(Hashes{1, 2, 3, 4}, 3) == 0);
  cache.give(Slot{0});
  CHECK(cache.free_blocks() == 8);
  CHECK(cache.match(Hashes{1, 2, 3, 4}) == 3);
  CHECK(cache.match_free(Hashes{1, 2, 3}, 2) == 2);
  // A match is of leading blocks: what comes after a gap is of no use.
  CHECK(cache.match(Hashes{1, 9, 3}) == 1);
  CHECK(cache.match(Hashes{2, 3}) == 2);
  CHECK(cache.match(Hashes{9, 1, 2}) == 0);
  CHECK(cache.match({}) == 0);
  CHECK(cache.audit());
}

TEST_CASE("shared blocks are counted by their users and go when the last of them goes") {
  PrefixCache cache(8, 4);
  fill(cache, 0, {1, 2});
  cache.adopt(Slot{1}, Hashes{1, 2}, 2);
  cache.adopt(Slot{2}, Hashes{1, 2}, 1);
  CHECK(table_of(cache, 1) == Table{0, 1});
  CHECK(table_of(cache, 2) == Table{0});
  CHECK(cache.free_blocks() == 6);
  cache.give(Slot{0});
  CHECK(cache.free_blocks() == 6);
  cache.give(Slot{1});
  // Block 0 has one user left.
  CHECK(cache.free_blocks() == 7);
  cache.give(Slot{2});
  CHECK(cache.free_blocks() == 8);
  CHECK(cache.audit());
}

TEST_CASE("the block freed longest ago is evicted first, and tails were freed before heads") {
  PrefixCache cache(6, 4);
  fill(cache, 0, {1, 2, 3});
  fill(cache, 1, {4, 5});
  // Free so far: block 5. The second sequence ends first: 4, 3 (its tail is block 4), then 2, 1, 0.
  cache.give(Slot{1});
  cache.give(Slot{0});
  cache.take(Slot{2}, 1);
  CHECK(table_of(cache, 2) == Table{5});
  CHECK((cache.match(Hashes{4, 5}) == 2 && cache.match(Hashes{1, 2, 3}) == 3));
  cache.take(Slot{2}, 1);
  CHECK((cache.match(Hashes{4, 5}) == 1 && cache.match(Hashes{1, 2, 3}) == 3));
  cache.take(Slot{2}, 1);
  CHECK((cache.match(Hashes{4, 5}) == 0 && cache.match(Hashes{1, 2, 3}) == 3));
  cache.take(Slot{2}, 1);
  CHECK(cache.match(Hashes{1, 2, 3}) == 2);
  CHECK(table_of(cache, 2) == Table{5, 4, 3, 2});
  CHECK(cache.audit());
}

TEST_CASE("being used makes a cached block young") {
  PrefixCache cache(2, 4);
  fill(cache, 0, {1});
  fill(cache, 1, {2});
  cache.give(Slot{0});
  cache.give(Slot{1});
  // Block 0 was freed first, but is used once more.
  cache.adopt(Slot{2}, Hashes{1}, 1);
  cache.give(Slot{2});
  cache.take(Slot{3}, 1);
  CHECK(table_of(cache, 3) == Table{1});
  CHECK((cache.match(Hashes{1}) == 1 && cache.match(Hashes{2}) == 0));
}

TEST_CASE("a second block of the same content cannot be found while the first lives") {
  PrefixCache cache(4, 4);
  fill(cache, 0, {7});
  fill(cache, 1, {7});
  cache.give(Slot{1});
  // Block 1 went free without an identity; block 0 is the one that is found.
  CHECK(cache.match_free(Hashes{7}, 1) == 0);
  cache.adopt(Slot{2}, Hashes{7}, 1);
  CHECK(table_of(cache, 2) == Table{0});
}

TEST_CASE("a block that will not be filled after all loses its identity") {
  PrefixCache cache(4, 2);
  fill(cache, 0, {1, 2});
  cache.unseal(Slot{0}, 1);
  CHECK(cache.match(Hashes{1, 2}) == 1);
  cache.seal(Slot{0}, 1, 3);
  CHECK(cache.match(Hashes{1, 3}) == 2);
  // One that never had an identity has none to lose.
  fill(cache, 1, {1});
  cache.unseal(Slot{1}, 0);
  CHECK(cache.match(Hashes{1}) == 1);
}

TEST_CASE("a pool with a prefix cache counts cached blocks that nobody uses as free") {
  Policy policy;
  policy.prefix_cache = true;
  policy.null_blocks = 1;
  KvPool pool(policy, {5, 0, 100, false});
  pool.take(Slot{0}, 3);
  pool.cache()->seal(Slot{0}, 0, 1);
  CHECK(pool.free() == 1);
  pool.give(Slot{0}, 3);
  CHECK(pool.free() == 4);
  KvUse use;
  pool.measure(use);
  CHECK((use.blocks_total == 4 && use.blocks_held == 0 && use.largest_free_range == 4));
  // To use a cached free block costs a free block, which `match_free` tells.
  CHECK(pool.cache()->match_free(Hashes{1}, 1) == 1);
  CHECK_FALSE(pool.fits(4, 1));
}

namespace {

/// The cache as lists and loops.
struct PlainCache {
  struct Block {
    std::uint64_t hash = 0;
    int users = 0;
  };
  explicit PlainCache(std::int32_t count) : blocks(static_cast<std::size_t>(count)) {
    for (std::int32_t b = 0; b < count; ++b) order.push_back(b);
  }
  Block& block(std::int32_t b) { return blocks[static_cast<std::size_t>(b)]; }
  std::int32_t find(std::uint64_t hash) {
    for (std::size_t b = 0; b < blocks.size(); ++b)
      if (blocks[b].hash == hash) return static_cast<std::int32_t>(b);
    return -1;
  }
  Table match(const Hashes& hashes) {
    Table table;
    for (const std::uint64_t hash : hashes) {
      if (find(hash) < 0) break;
      table.push_back(find(hash));
    }
    return table;
  }
  std::int32_t lying_free(const Table& table) {
    return static_cast<std::int32_t>(
        std::count_if(table.begin(), table.end(), [&](std::int32_t b) { return block(b).users == 0; }));
  }
  /// `table` are the blocks hit; what is missing comes from the front of the order.
  void open(Table& table, const Hashes& hashes) {
    for (const std::int32_t b : table)
      if (block(b).users++ == 0) order.remove(b);
    const std::size_t hit = table.size();
    while (table.size() < hashes.size()) {
      table.push_back(order.front());
      order.pop_front();
      block(table.back()) = {0, 1};
    }
    for (std::size_t p = hit; p < hashes.size(); ++p)
      if (find(hashes[p]) < 0) block(table[p]).hash = hashes[p];
  }
  void give(const Table& table) {
    for (auto b = table.rbegin(); b != table.rend(); ++b)
      if (--block(*b).users == 0) order.push_back(*b);
  }
  std::vector<Block> blocks;
  std::list<std::int32_t> order;
};

}  // namespace

TEST_CASE("the cache does what lists of blocks do", "[property]") {
  for_each_seed(100, [](Draw& draw) {
    const auto blocks = draw.small(2, 16);
    constexpr std::uint32_t kSlots = 5;
    PrefixCache cache(blocks, kSlots);
    PlainCache plain(blocks);
    std::map<std::uint32_t, Table> tables;
    for (int operation = 0; operation < 150; ++operation) {
      const auto slot = static_cast<std::uint32_t>(draw.between(0, kSlots - 1));
      if (tables.contains(slot)) {
        cache.give(Slot{slot});
        plain.give(tables[slot]);
        tables.erase(slot);
      } else {
        // One of three prompts that begin alike.
        Hashes hashes{1, 2};
        const auto family = static_cast<std::uint64_t>(draw.between(1, 3));
        for (std::int64_t i = draw.between(0, 4); i > 0; --i)
          hashes.push_back(family * 100 + static_cast<std::uint64_t>(i));
        Table table = plain.match(hashes);
        const auto hit = static_cast<std::int32_t>(table.size());
        LAW(cache.match(hashes) == hit, hit);
        LAW(cache.match_free(hashes, hit) == plain.lying_free(table));
        const auto rest = static_cast<std::int64_t>(hashes.size()) - hit;
        if (rest > cache.free_blocks() - plain.lying_free(table)) continue;
        plain.open(table, hashes);
        cache.adopt(Slot{slot}, hashes, hit);
        fill(cache, slot, hashes, hit);
        tables[slot] = table;
        LAW(table_of(cache, slot) == table);
      }
      LAW(cache.free_blocks() == static_cast<std::int64_t>(plain.order.size()));
      LAW(cache.audit());
    }
  });
}

#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/core/policy.hpp"
#include "sim/core/prefix_cache.hpp"
#include "sim/core/step.hpp"

namespace foretoken {

/// First-fit allocation of contiguous ranges of blocks, for engines without paging; what it cannot use is
/// external fragmentation.
class RangeAllocator {
 public:
  RangeAllocator(std::int64_t blocks, std::int32_t slots);
  /// The longest free range.
  std::int64_t largest() const;
  /// Takes the first range that is long enough; there must be one.
  void take(Slot slot, std::int64_t blocks);
  void give(Slot slot);

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t length = 0;
  };
  std::vector<Range> free_;  // sorted by begin, never touching
  std::vector<Range> held_;  // by slot
};

/// PLACE: the device's KV blocks and the host pool, as counts. Private blocks are counted here and numbered
/// by the backend; with the prefix cache on they are numbered here, because sharing needs identities.
class KvPool {
 public:
  KvPool(const Policy& policy, const Capacity& capacity);

  /// Blocks that sequences can use.
  std::int64_t usable() const { return usable_; }
  /// Free blocks, evictable cached ones included.
  std::int64_t free() const { return cache_ ? cache_->free_blocks() : free_; }
  /// Whether `blocks` can be taken for one sequence while `reserve` stay free.
  bool fits(std::int64_t blocks, std::int64_t reserve = 0) const {
    if (blocks <= 0) return true;
    return ranges_ ? ranges_->largest() >= blocks && free_ - blocks >= reserve : free() - blocks >= reserve;
  }
  /// Takes blocks for a slot; they must fit.
  void take(Slot slot, std::int64_t blocks) {
    if (blocks <= 0) return;
    if (cache_) return cache_->take(slot, static_cast<std::int32_t>(blocks));
    if (ranges_) ranges_->take(slot, blocks);
    take_many(blocks);
  }
  /// Takes blocks for several slots at once; counted placement only.
  void take_many(std::int64_t blocks) {
    FT_CHECK(blocks <= free_, blocks, free_);
    free_ -= blocks;
  }
  /// Gives back everything the slot holds, which are `blocks`.
  void give(Slot slot, std::int64_t blocks);
  /// Gives back counted blocks that no slot names any more: a transfer has ended.
  void give_many(std::int64_t blocks) { free_ += blocks; }

  std::int64_t host_free() const { return host_free_; }
  /// Takes blocks of the host pool; they must be free.
  void host_take(std::int64_t blocks);
  /// Gives them back.
  void host_give(std::int64_t blocks);

  /// Null unless the prefix cache is on.
  PrefixCache* cache() { return cache_ ? &*cache_ : nullptr; }
  const PrefixCache* cache() const { return cache_ ? &*cache_ : nullptr; }
  /// Fills in the block counts; the caller knows the tokens.
  void measure(KvUse& use) const;

 private:
  std::int64_t usable_;
  std::int64_t free_;
  std::int64_t host_total_;
  std::int64_t host_free_;
  std::optional<RangeAllocator> ranges_;
  std::optional<PrefixCache> cache_;
};

}  // namespace foretoken

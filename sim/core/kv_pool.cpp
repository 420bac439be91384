#include "sim/core/kv_pool.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/check.hpp"

namespace foretoken {

RangeAllocator::RangeAllocator(std::int64_t blocks, std::int32_t slots)
    : free_{{0, blocks}}, held_(static_cast<std::size_t>(slots)) {}

std::int64_t RangeAllocator::largest() const {
  std::int64_t longest = 0;
  for (const Range& r : free_) longest = std::max(longest, r.length);
  return longest;
}

void RangeAllocator::take(Slot slot, std::int64_t blocks) {
  const auto fit =
      std::find_if(free_.begin(), free_.end(), [&](const Range& r) { return r.length >= blocks; });
  FT_CHECK(fit != free_.end() && held_[index(slot)].length == 0, blocks);
  held_[index(slot)] = {fit->begin, blocks};
  fit->begin += blocks;
  fit->length -= blocks;
  if (fit->length == 0) free_.erase(fit);
}

void RangeAllocator::give(Slot slot) {
  const Range range = std::exchange(held_[index(slot)], Range{});
  if (range.length == 0) return;
  auto next = std::lower_bound(free_.begin(), free_.end(), range.begin,
                               [](const Range& r, std::int64_t begin) { return r.begin < begin; });
  next = free_.insert(next, range);
  if (next + 1 != free_.end() && next->begin + next->length == (next + 1)->begin) {
    next->length += (next + 1)->length;
    free_.erase(next + 1);
  }
  if (next != free_.begin() && (next - 1)->begin + (next - 1)->length == next->begin) {
    (next - 1)->length += next->length;
    free_.erase(next);
  }
}

KvPool::KvPool(const Policy& policy, const Capacity& capacity)
    : usable_(capacity.kv_blocks - policy.null_blocks),
      free_(usable_),
      host_total_(capacity.host_blocks),
      host_free_(capacity.host_blocks) {
  FT_CHECK(usable_ > 0, capacity.kv_blocks);
  // One slot more than sequences, since a slot may wait for its step to end while its successor is resident.
  const std::int32_t slots = 2 * policy.sequences_max + 2;
  if (policy.place == Place::contiguous) ranges_.emplace(usable_, slots);
  if (policy.prefix_cache) cache_.emplace(usable_, slots);
}

void KvPool::give(Slot slot, std::int64_t blocks) {
  if (cache_) return cache_->give(slot);
  if (ranges_) ranges_->give(slot);
  free_ += blocks;
  FT_CHECK(free_ <= usable_, free_, usable_);
}

void KvPool::host_take(std::int64_t blocks) {
  FT_CHECK(blocks <= host_free_, blocks, host_free_);
  host_free_ -= blocks;
}

void KvPool::host_give(std::int64_t blocks) {
  host_free_ += blocks;
  FT_CHECK(host_free_ <= host_total_, host_free_);
}

void KvPool::measure(KvUse& use) const {
  use.blocks_total = usable_;
  use.blocks_held = usable_ - free();
  use.host_blocks_held = host_total_ - host_free_;
  use.largest_free_range = ranges_ ? ranges_->largest() : free();
}

}  // namespace foretoken

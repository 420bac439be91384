#include "sim/core/prefix_cache.hpp"

#include "sim/base/check.hpp"

namespace foretoken {

PrefixCache::PrefixCache(std::int64_t blocks, std::int32_t slots)
    : blocks_(static_cast<std::size_t>(blocks)), tables_(static_cast<std::size_t>(slots)) {
  by_hash_.reserve(blocks_.size());
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(blocks); ++b) append_free(b);
}

std::int32_t PrefixCache::match(std::span<const std::uint64_t> hashes) const {
  std::int32_t count = 0;
  for (const std::uint64_t hash : hashes) {
    if (!by_hash_.contains(hash)) break;
    ++count;
  }
  return count;
}

std::int32_t PrefixCache::match_free(std::span<const std::uint64_t> hashes, std::int32_t count) const {
  std::int32_t lying_free = 0;
  for (const std::uint64_t hash : hashes.first(static_cast<std::size_t>(count)))
    lying_free += blocks_[static_cast<std::size_t>(by_hash_.at(hash))].references == 0;
  return lying_free;
}

void PrefixCache::adopt(Slot slot, std::span<const std::uint64_t> hashes, std::int32_t count) {
  FT_CHECK(tables_[index(slot)].empty());
  for (const std::uint64_t hash : hashes.first(static_cast<std::size_t>(count))) {
    const std::int32_t b = by_hash_.at(hash);
    if (blocks_[static_cast<std::size_t>(b)].references++ == 0) remove_free(b);
    tables_[index(slot)].push_back(b);
  }
}

void PrefixCache::take(Slot slot, std::int32_t count) {
  FT_CHECK(count <= free_count_, count, free_count_);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t b = free_head_;
    remove_free(b);
    Block& block = blocks_[static_cast<std::size_t>(b)];
    if (block.hashed) by_hash_.erase(block.hash);
    block.hashed = false;
    block.references = 1;
    tables_[index(slot)].push_back(b);
  }
}

void PrefixCache::seal(Slot slot, std::int32_t position, std::uint64_t hash) {
  const std::int32_t b = tables_[index(slot)][static_cast<std::size_t>(position)];
  Block& block = blocks_[static_cast<std::size_t>(b)];
  if (block.hashed || !by_hash_.try_emplace(hash, b).second) return;
  block.hashed = true;
  block.hash = hash;
}

void PrefixCache::unseal(Slot slot, std::int32_t position) {
  const std::int32_t b = tables_[index(slot)][static_cast<std::size_t>(position)];
  Block& block = blocks_[static_cast<std::size_t>(b)];
  if (!block.hashed) return;
  by_hash_.erase(block.hash);
  block.hashed = false;
}

void PrefixCache::give(Slot slot) {
  std::vector<std::int32_t>& table = tables_[index(slot)];
  for (; !table.empty(); table.pop_back()) {
    Block& block = blocks_[static_cast<std::size_t>(table.back())];
    FT_CHECK(block.references > 0, table.back());
    if (--block.references == 0) append_free(table.back());
  }
}

void PrefixCache::append_free(std::int32_t b) {
  Block& block = blocks_[static_cast<std::size_t>(b)];
  block.next = kNone;
  block.previous = free_tail_;
  (free_tail_ == kNone ? free_head_ : blocks_[static_cast<std::size_t>(free_tail_)].next) = b;
  free_tail_ = b;
  ++free_count_;
}

void PrefixCache::remove_free(std::int32_t b) {
  const Block& block = blocks_[static_cast<std::size_t>(b)];
  (block.previous == kNone ? free_head_ : blocks_[static_cast<std::size_t>(block.previous)].next) =
      block.next;
  (block.next == kNone ? free_tail_ : blocks_[static_cast<std::size_t>(block.next)].previous) =
      block.previous;
  --free_count_;
}

bool PrefixCache::audit() const {
  std::vector<std::int32_t> references(blocks_.size(), 0);
  for (const auto& table : tables_)
    for (const std::int32_t b : table) ++references[static_cast<std::size_t>(b)];
  std::int64_t lying_free = 0;
  for (std::int32_t b = free_head_; b != kNone; b = blocks_[static_cast<std::size_t>(b)].next) {
    if (blocks_[static_cast<std::size_t>(b)].references != 0) return false;
    ++lying_free;
  }
  std::int64_t unreferenced = 0;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (references[b] != blocks_[b].references) return false;
    unreferenced += references[b] == 0;
  }
  return lying_free == free_count_ && unreferenced == free_count_;
}

}  // namespace foretoken

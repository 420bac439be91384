#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/core/request.hpp"

namespace foretoken {

/// Numbered KV blocks with identities. A full block is known by a hash chained over everything before it; the
/// list of free blocks doubles as the order of eviction, least recently freed first, and a sequence's blocks
/// are freed last one first, so that tails die before heads. A second block of the same content is not
/// findable while the first lives.
class PrefixCache {
 public:
  PrefixCache(std::int64_t blocks, std::int32_t slots);

  std::int64_t free_blocks() const { return free_count_; }
  /// Block numbers of a slot, in the order of its tokens.
  std::span<const std::int32_t> table(Slot slot) const { return tables_[index(slot)]; }

  /// How many of the leading hashes are cached.
  std::int32_t match(std::span<const std::uint64_t> hashes) const;
  /// How many of the first `count` of them lie in the free list, so that using them costs free blocks.
  std::int32_t match_free(std::span<const std::uint64_t> hashes, std::int32_t count) const;
  /// Gives an empty slot the cached blocks of the first `count` hashes.
  void adopt(Slot slot, std::span<const std::uint64_t> hashes, std::int32_t count);
  /// Appends `count` blocks, evicting cached content as needed; they must be free.
  void take(Slot slot, std::int32_t count);
  /// The slot's block at `position` is full and has this identity now.
  void seal(Slot slot, std::int32_t position, std::uint64_t hash);
  /// The block will not be filled after all: its identity is forgotten.
  void unseal(Slot slot, std::int32_t position);
  /// Frees all blocks of the slot, tail first.
  void give(Slot slot);

  /// Checks reference counts against the tables and the free list against the counts; for tests. True when
  /// they agree.
  bool audit() const;

 private:
  static constexpr std::int32_t kNone = -1;
  struct Block {
    std::uint64_t hash = 0;
    std::int32_t references = 0;
    std::int32_t next = kNone;
    std::int32_t previous = kNone;
    bool hashed = false;
  };
  void append_free(std::int32_t block);
  void remove_free(std::int32_t block);

  std::vector<Block> blocks_;
  std::vector<std::vector<std::int32_t>> tables_;
  // Looked up by key only, never iterated, so that its order cannot reach a result.
  std::unordered_map<std::uint64_t, std::int32_t> by_hash_;
  std::int32_t free_head_ = kNone;
  std::int32_t free_tail_ = kNone;
  std::int64_t free_count_ = 0;
};

}  // namespace foretoken

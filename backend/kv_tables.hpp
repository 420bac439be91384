#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backend/step_rows.hpp"
#include "sim/core/request.hpp"

namespace foretoken {

/// Which blocks hold whose keys and values. The core counts private blocks and these tables number them;
/// blocks that the core numbers itself (prefix cache) come in as external tables.
class KvTables {
 public:
  /// `blocks` on the device and `host_blocks` for swap.
  KvTables(std::int32_t block_tokens, std::int64_t blocks, std::int64_t host_blocks);

  /// Number of the dummy block of the device pool, which stands in for the pages of dead rows.
  std::int32_t dummy_block() const { return static_cast<std::int32_t>(blocks_); }
  std::int64_t free_blocks() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t free_host_blocks() const { return static_cast<std::int64_t>(host_free_.size()); }

  /// Grows the slot's table so that it holds `tokens`. The core has counted the blocks, so running out is our
  /// bug.
  void grow(Slot slot, std::int64_t tokens);
  /// From now on, until `release`, the slot's blocks are those of `table`, which the core numbered; copied.
  void use_external_table(Slot slot, std::span<const std::int32_t> table);
  /// Blocks of the slot, in the order of its tokens. The view lives until the slot's table changes.
  std::span<const std::int32_t> table(Slot slot) const;
  /// Gives the slot's own blocks back; external ones are only forgotten.
  void release(Slot slot);

  /// Takes host blocks for the first `tokens` of the slot, notes in `copies` what must be copied, and
  /// releases the slot. The device blocks may be handed out again at once: copies out run before anything
  /// writes.
  void swap_out(Slot slot, Handle request, std::int64_t tokens, BlockCopies& copies);
  /// Notes in `copies` what brings a swapped request back into the slot, whose table must already hold it,
  /// and frees its host blocks.
  void swap_in(Slot slot, Handle request, BlockCopies& copies);
  /// Frees the host blocks of a request that ended while swapped out, if any.
  void forget(Handle request);

 private:
  struct Table {
    std::vector<std::int32_t> blocks;
    bool external = false;
  };
  Table& at(Slot slot);

  std::int32_t block_tokens_;
  std::int64_t blocks_;
  /// Stacks, so that the blocks freed last, which are still in some cache, are used first.
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> host_free_;
  std::vector<Table> tables_;
  std::vector<std::vector<std::int32_t>> swapped_;
};

}  // namespace foretoken

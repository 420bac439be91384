#include "backend/kv_tables.hpp"

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// The numbers of `blocks` free blocks as a stack that hands out 0 first.
std::vector<std::int32_t> descending(std::int64_t blocks) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(blocks));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::int32_t>(numbers.size() - 1 - i);
  return numbers;
}

}  // namespace

KvTables::KvTables(std::int32_t block_tokens, std::int64_t blocks, std::int64_t host_blocks)
    : block_tokens_(block_tokens),
      blocks_(blocks),
      free_(descending(blocks)),
      host_free_(descending(host_blocks)) {}

KvTables::Table& KvTables::at(Slot slot) {
  if (index(slot) >= tables_.size()) tables_.resize(index(slot) + 1);
  return tables_[index(slot)];
}

void KvTables::grow(Slot slot, std::int64_t tokens) {
  Table& table = at(slot);
  const auto needed = static_cast<std::size_t>((tokens + block_tokens_ - 1) / block_tokens_);
  if (table.blocks.size() >= needed) return;
  FT_CHECK(!table.external, index(slot), tokens, table.blocks.size());
  while (table.blocks.size() < needed) {
    FT_CHECK(!free_.empty(), index(slot), tokens, blocks_);
    table.blocks.push_back(free_.back());
    free_.pop_back();
  }
}

void KvTables::use_external_table(Slot slot, std::span<const std::int32_t> table) {
  Table& own = at(slot);
  FT_CHECK(own.external || own.blocks.empty(), index(slot));
  own.external = true;
  own.blocks.assign(table.begin(), table.end());
}

std::span<const std::int32_t> KvTables::table(Slot slot) const {
  if (index(slot) >= tables_.size()) return {};
  return tables_[index(slot)].blocks;
}

void KvTables::release(Slot slot) {
  Table& table = at(slot);
  if (!table.external)
    for (; !table.blocks.empty(); table.blocks.pop_back()) free_.push_back(table.blocks.back());
  table.blocks.clear();
  table.external = false;
}

void KvTables::swap_out(Slot slot, Handle request, std::int64_t tokens, BlockCopies& copies) {
  if (index(request) >= swapped_.size()) swapped_.resize(index(request) + 1);
  std::vector<std::int32_t>& kept = swapped_[index(request)];
  FT_CHECK(kept.empty(), index(request));
  const auto needed = static_cast<std::size_t>((tokens + block_tokens_ - 1) / block_tokens_);
  const Table& table = at(slot);
  FT_CHECK(needed <= table.blocks.size() && needed <= host_free_.size(), needed, table.blocks.size(),
           host_free_.size());
  for (std::size_t i = 0; i < needed; ++i) {
    kept.push_back(host_free_.back());
    host_free_.pop_back();
    copies.from.push_back(table.blocks[i]);
    copies.to.push_back(kept.back());
  }
  release(slot);
}

void KvTables::swap_in(Slot slot, Handle request, BlockCopies& copies) {
  FT_CHECK(index(request) < swapped_.size(), index(request));
  std::vector<std::int32_t>& kept = swapped_[index(request)];
  const Table& table = at(slot);
  FT_CHECK(kept.size() <= table.blocks.size(), kept.size(), table.blocks.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    copies.from.push_back(kept[i]);
    copies.to.push_back(table.blocks[i]);
  }
  forget(request);
}

void KvTables::forget(Handle request) {
  if (index(request) >= swapped_.size()) return;
  std::vector<std::int32_t>& kept = swapped_[index(request)];
  host_free_.insert(host_free_.end(), kept.rbegin(), kept.rend());
  kept.clear();
}

}  // namespace foretoken

#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/core/request.hpp"

namespace foretoken {

/// The sequences that decode one token in every step. Their contexts are offsets to one counter, the tick, so
/// that a step costs the same at batch 2 and at 256: a row's context is `tick - offset`, and rows that open a
/// block at the same ticks share one counter.
class LockStep {
 public:
  LockStep(std::int32_t block_tokens, std::int32_t slots)
      : block_tokens_(block_tokens),
        residues_(static_cast<std::size_t>(block_tokens)),
        rows_(static_cast<std::size_t>(slots)) {
    offsets_.reserve(rows_.size());
    slots_.reserve(rows_.size());
  }

  std::int64_t tick() const { return tick_; }
  std::int32_t count() const { return static_cast<std::int32_t>(slots_.size()); }
  std::int64_t context_sum() const { return context_sum_; }
  /// Tokens that the row has in the KV cache.
  std::int32_t context(Slot slot) const {
    return static_cast<std::int32_t>(tick_ - offsets_[rows_[index(slot)]]);
  }
  /// The rows, in no particular order.
  std::span<const Slot> slots() const { return slots_; }
  std::int32_t context_min() { return extent().least; }
  std::int32_t context_max() { return extent().greatest; }

  /// A row that has `context` tokens now.
  void enter(Slot slot, std::int32_t context) {
    const std::int64_t offset = tick_ - context;
    rows_[index(slot)] = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(slot);
    offsets_.push_back(offset);
    ++residues_[residue(offset)];
    context_sum_ += context;
    extremes_.low = std::min(extremes_.low, offset);
    extremes_.high = std::max(extremes_.high, offset);
  }
  void leave(Slot slot) {
    const std::uint32_t row = rows_[index(slot)];
    FT_CHECK(row < slots_.size() && slots_[row] == slot, row);
    const std::int64_t offset = offsets_[row];
    context_sum_ -= tick_ - offset;
    --residues_[residue(offset)];
    slots_[row] = slots_.back();
    offsets_[row] = offsets_.back();
    rows_[index(slots_[row])] = row;
    slots_.pop_back();
    offsets_.pop_back();
    if (offset == extremes_.low || offset == extremes_.high) stale_ = true;
  }
  /// Every row gets `ticks` tokens.
  void advance(std::int64_t ticks) {
    tick_ += ticks;
    phase_ = static_cast<std::int32_t>((phase_ + ticks) % block_tokens_);
    context_sum_ += ticks * count();
  }
  /// Blocks that the rows open with their next token.
  std::int32_t growth() const { return residues_[static_cast<std::size_t>(phase_)]; }
  /// Blocks that the rows open over the next `ticks` tokens.
  std::int64_t growth_over(std::int64_t ticks) const {
    const std::int64_t cycles = ticks / block_tokens_;
    std::int64_t blocks = cycles * count();
    for (std::int64_t j = 0; j < ticks - cycles * block_tokens_; ++j)
      blocks += residues_[static_cast<std::size_t>((phase_ + j) % block_tokens_)];
    return blocks;
  }
  /// The most ticks in [0, limit] whose growth stays within `blocks`.
  std::int64_t ticks_within(std::int64_t blocks, std::int64_t limit) const {
    if (count() == 0) return limit;
    const std::int64_t cycles = std::min(blocks / count(), limit / block_tokens_);
    std::int64_t ticks = cycles * block_tokens_;
    blocks -= cycles * count();
    for (; ticks < limit; ++ticks) {
      blocks -= residues_[static_cast<std::size_t>((phase_ + ticks) % block_tokens_)];
      if (blocks < 0) break;
    }
    return ticks;
  }

 private:
  struct Extent {
    std::int32_t least = 0;
    std::int32_t greatest = 0;
  };
  struct Extremes {
    std::int64_t low = INT64_MAX;
    std::int64_t high = INT64_MIN;
  };
  std::size_t residue(std::int64_t offset) const {
    const std::int64_t r = offset % block_tokens_;
    return static_cast<std::size_t>(r < 0 ? r + block_tokens_ : r);
  }
  Extent extent() {
    if (slots_.empty()) {
      extremes_ = {};
      stale_ = false;
      return {};
    }
    if (stale_) {
      extremes_ = {};
      for (const std::int64_t offset : offsets_) {
        extremes_.low = std::min(extremes_.low, offset);
        extremes_.high = std::max(extremes_.high, offset);
      }
      stale_ = false;
    }
    return {static_cast<std::int32_t>(tick_ - extremes_.high),
            static_cast<std::int32_t>(tick_ - extremes_.low)};
  }

  std::int32_t block_tokens_;
  std::int64_t tick_ = 0;
  std::int32_t phase_ = 0;  // tick modulo block_tokens
  std::int64_t context_sum_ = 0;
  std::vector<std::int32_t> residues_;
  std::vector<std::uint32_t> rows_;  // by slot
  std::vector<Slot> slots_;
  std::vector<std::int64_t> offsets_;
  Extremes extremes_;
  bool stale_ = false;
};

}  // namespace foretoken

#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace foretoken {

/// Greatest gap from any decode step on: a stack of the gaps that no later one reaches, so that a query is a
/// bisection and an insertion O(1) amortised. Steps are inserted with rising numbers.
class GapMaxima {
 public:
  /// The gap that ended with decode step `step`.
  void insert(std::int64_t step, std::int64_t gap_ps) {
    while (!entries_.empty() && entries_.back().gap_ps <= gap_ps) entries_.pop_back();
    entries_.push_back({step, gap_ps});
  }
  /// The greatest gap among steps from `step` on; -1 when there is none.
  std::int64_t greatest_from(std::int64_t step) const {
    const auto at =
        std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.step < step; });
    return at == entries_.end() ? -1 : at->gap_ps;
  }
  /// Forgets steps before `step`.
  void forget_before(std::int64_t step) {
    const auto at =
        std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.step < step; });
    entries_.erase(entries_.begin(), at);
  }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::int64_t step;
    std::int64_t gap_ps;
  };
  std::vector<Entry> entries_;
};

}  // namespace foretoken

#include "kernels/cuda/prefill_plan.hpp"

#include <algorithm>

namespace foretoken::cuda {

int plan_prefill(std::span<const std::int32_t> row_begin, std::span<const std::int32_t> context,
                 int sequences, int group, PrefillItem* items) {
  int count = 0;
  for (int s = 0; s < sequences; ++s) {
    const auto at = static_cast<std::size_t>(s);
    const int rows = (row_begin[at + 1] - row_begin[at]) * group;
    for (int row = 0; row < rows; row += kPrefillRows) items[count++] = {s, row};
  }
  // Keys that the last row of an item sees.
  const auto keys = [&](const PrefillItem& item) {
    const auto at = static_cast<std::size_t>(item.sequence);
    const int tokens = row_begin[at + 1] - row_begin[at];
    const int last = std::min((item.row + kPrefillRows - 1) / group, tokens - 1);
    return context[at] - tokens + last;
  };
  std::stable_sort(items, items + count,
                   [&](const PrefillItem& a, const PrefillItem& b) { return keys(a) > keys(b); });
  return count;
}

}  // namespace foretoken::cuda

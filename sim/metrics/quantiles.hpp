#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/metrics/metric.hpp"

namespace foretoken {

/// The q-quantile of a sorted, non-empty sample by numpy's linear rule: between order statistics
/// floor((n-1)q) and the next.
double sorted_quantile(std::span<const std::int64_t> sorted, double q);

/// The same of a sample in any order, which is reordered for it.
double quantile_of(std::span<std::int64_t> values, double q);

/// A column in parts, with -1 where a row has no value, and a mark (0 or 1) for each row.
struct MarkedColumn {
  std::vector<std::span<const std::int64_t>> parts;
  std::span<const std::uint8_t> marks;
};
/// Figures of a column; rows without a value are `excluded`.
struct MarkedSummaries {
  Summary all;
  Summary marked;  ///< Of the marked rows.
};
/// Exact figures, rows in any order, in linear time: values are counted in log-linear buckets, and only the
/// buckets that hold an asked-for rank are ordered.
MarkedSummaries exact_summaries(const MarkedColumn& column);
/// Exact figures of one sample.
Summary exact_summary(std::span<const std::int64_t> values_ps);

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/metrics/metric.hpp"

namespace foretoken {

/// The q-quantile of a sorted, non-empty sample by numpy's linear rule: between order statistics
/// floor((n-1)q) and the next.
double sorted_quantile(std::span<const std::int64_t> sorted, double q);

/// Exact figures of a sample in any order, in linear time: values are counted in log-linear buckets, and only
/// the buckets that hold an asked-for rank are ordered. Values are not negative.
Summary exact_summary(std::span<const std::int64_t> values_ps);

}  // namespace foretoken

#include "sim/metrics/quantiles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "sim/base/check.hpp"
#include "sim/metrics/wide.hpp"

namespace foretoken {
namespace {

// Coarser than the histogram's buckets: 32 per octave, so that the counters of a pass stay in the first-level
// cache.
constexpr int kBits = 5;
constexpr std::size_t kBuckets = static_cast<std::size_t>(64 - kBits) << kBits;

std::size_t bucket_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const int width = static_cast<int>(std::bit_width(bits));
  if (width <= kBits) return static_cast<std::size_t>(bits);
  const int shift = width - kBits - 1;
  return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(bits >> shift);
}

struct Position {
  std::size_t rank = 0;
  double part = 0;
};

Position position_of(double q, std::size_t count) {
  const double position = q * static_cast<double>(count - 1);
  const auto rank = static_cast<std::size_t>(position);
  return {rank, position - static_cast<double>(rank)};
}

double between(std::int64_t low, std::int64_t high, double part) {
  return static_cast<double>(low) + static_cast<double>(high - low) * part;
}

/// Order statistics of the given ranks (rising, distinct).
std::vector<std::int64_t> select(std::span<const std::int64_t> values, std::span<const std::size_t> ranks) {
  std::vector<std::uint32_t> counts(kBuckets + 1);
  for (const std::int64_t value : values) ++counts[bucket_of(value)];
  // Buckets that hold a rank get a place in `gathered`; `cursor` says where their next value goes.
  constexpr std::uint32_t kUnwanted = 0xffffffffu;
  std::vector<std::uint32_t> cursor(kBuckets, kUnwanted);
  struct Range {
    std::size_t before, begin, count;
    bool equal;
  };
  std::vector<Range> ranges;
  std::vector<std::size_t> range_of_rank;
  std::size_t before = 0;
  std::size_t gathered_count = 0;
  std::size_t next = 0;
  for (std::size_t b = 0; b < kBuckets && next < ranks.size(); ++b) {
    const std::size_t count = counts[b];
    if (ranks[next] < before + count) {
      cursor[b] = static_cast<std::uint32_t>(gathered_count);
      ranges.push_back({before, gathered_count, count, b < (std::size_t{1} << kBits)});
      gathered_count += count;
    }
    for (; next < ranks.size() && ranks[next] < before + count; ++next)
      range_of_rank.push_back(ranges.size() - 1);
    before += count;
  }
  FT_CHECK(next == ranks.size());
  std::vector<std::int64_t> gathered(gathered_count);
  for (const std::int64_t value : values) {
    std::uint32_t& at = cursor[bucket_of(value)];
    if (at != kUnwanted) gathered[at++] = value;
  }
  std::vector<std::int64_t> found;
  std::size_t done = 0;  // everything before it is in its final place
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Range& range = ranges[range_of_rank[r]];
    const std::size_t at = range.begin + (ranks[r] - range.before);
    const auto begin = gathered.begin() + static_cast<std::ptrdiff_t>(std::max(done, range.begin));
    const auto end = gathered.begin() + static_cast<std::ptrdiff_t>(range.begin + range.count);
    // Times that most requests do not have are all 0; a bucket of equal values is sorted as it stands.
    if (!range.equal) std::nth_element(begin, gathered.begin() + static_cast<std::ptrdiff_t>(at), end);
    done = at + 1;
    found.push_back(gathered[at]);
  }
  return found;
}

}  // namespace

double sorted_quantile(std::span<const std::int64_t> sorted, double q) {
  FT_CHECK(!sorted.empty());
  const Position p = position_of(q, sorted.size());
  const std::size_t next = std::min(p.rank + 1, sorted.size() - 1);
  return between(sorted[p.rank], sorted[next], p.part);
}

Summary exact_summary(std::span<const std::int64_t> values_ps) {
  Summary summary;
  summary.count = static_cast<std::int64_t>(values_ps.size());
  if (values_ps.empty()) return summary;
  FT_CHECK(values_ps.size() < 0xffffffffu);
  Wide sum = 0;
  for (const std::int64_t value : values_ps) sum += value;
  std::vector<std::size_t> ranks;
  for (std::size_t s = 0; s < kStatistics; ++s) {
    const auto q = statistic_quantile(static_cast<Statistic>(s));
    if (!q) continue;
    const std::size_t rank = position_of(*q, values_ps.size()).rank;
    for (const std::size_t wanted : {rank, std::min(rank + 1, values_ps.size() - 1)})
      if (ranks.empty() || ranks.back() < wanted) ranks.push_back(wanted);
  }
  const std::vector<std::int64_t> found = select(values_ps, ranks);
  const auto at = [&](std::size_t rank) {
    return found[static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) -
                                          ranks.begin())];
  };
  for (std::size_t s = 0; s < kStatistics; ++s) {
    const auto q = statistic_quantile(static_cast<Statistic>(s));
    if (!q) {
      summary.value_ps[s] = to_double(sum) / static_cast<double>(values_ps.size());
      continue;
    }
    const Position p = position_of(*q, values_ps.size());
    summary.value_ps[s] = between(at(p.rank), at(std::min(p.rank + 1, values_ps.size() - 1)), p.part);
  }
  return summary;
}

}  // namespace foretoken

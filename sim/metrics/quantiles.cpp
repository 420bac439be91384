#include "sim/metrics/quantiles.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/metrics/wide.hpp"

namespace foretoken {
namespace {

// Coarser than the histogram's buckets: 32 per octave, so that the counters of a pass stay in the first-level
// cache.
constexpr int kBits = 5;
// Octaves of values from -1 (none), which has the first bucket, to 2^63.
constexpr std::size_t kBuckets = std::size_t{65} << kBits;
// Below it a bucket holds one value: times that most requests do not have are all 0.
constexpr std::size_t kEqualBuckets = std::size_t{kBits + 1} << kBits;

std::size_t bucket_of(std::int64_t value) {
  // The upper bits of a double are a logarithmic scale, and cheaper than a search for the leading bit.
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(value + 2));
  return static_cast<std::size_t>(bits >> (52 - kBits)) - (std::size_t{1023} << kBits);
}

/// The value of a bucket that holds only one.
std::int64_t value_of(std::size_t bucket) {
  const std::uint64_t bits = (bucket + (std::size_t{1023} << kBits)) << (52 - kBits);
  return static_cast<std::int64_t>(std::bit_cast<double>(bits)) - 2;
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

/// Values of one kind, counted by bucket, and what is asked of them.
struct Sample {
  std::vector<std::uint32_t> counts = std::vector<std::uint32_t>(kBuckets);
  Wide sum = 0;
  std::size_t count = 0;
  std::size_t none = 0;
  std::vector<std::size_t> ranks;  // rising, distinct

  void ask() {
    none = std::exchange(counts[0], 0);
    count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    sum -= count;  // each of them was added as one more
    if (count == 0) return;
    for (std::size_t s = 0; s < kStatistics; ++s) {
      const auto q = statistic_quantile(static_cast<Statistic>(s));
      if (!q) continue;
      const std::size_t rank = position_of(*q, count).rank;
      for (const std::size_t wanted : {rank, std::min(rank + 1, count - 1)})
        if (ranks.empty() || ranks.back() < wanted) ranks.push_back(wanted);
    }
  }
  /// Calls `visit` with each bucket that holds a rank and the number of values before it.
  template <class Visit>
  void for_each_wanted(Visit visit) const {
    std::size_t before = 0;
    std::size_t next = 0;
    for (std::size_t b = 0; b < kBuckets && next < ranks.size(); before += counts[b++]) {
      if (ranks[next] >= before + counts[b]) continue;
      visit(b, before);
      while (next < ranks.size() && ranks[next] < before + counts[b]) ++next;
    }
    FT_CHECK(next == ranks.size());
  }
};

/// Order statistics of the sample's ranks; `candidates` are the values in wanted buckets of more than one
/// value, and maybe others.
std::vector<std::int64_t> select(const Sample& sample, std::span<const std::int64_t> candidates) {
  // These buckets get a place in `gathered`; `cursor` says where their next value goes.
  constexpr std::uint32_t kUnwanted = 0xffffffffu;
  std::vector<std::uint32_t> cursor(kBuckets, kUnwanted);
  std::size_t size = 0;
  sample.for_each_wanted([&](std::size_t b, std::size_t) {
    if (b < kEqualBuckets) return;
    cursor[b] = static_cast<std::uint32_t>(size);
    size += sample.counts[b];
  });
  std::vector<std::int64_t> gathered(size);
  for (const std::int64_t value : candidates) {
    std::uint32_t& at = cursor[bucket_of(value)];
    if (at != kUnwanted) gathered[at++] = value;
  }
  std::vector<std::int64_t> found;
  auto begin = gathered.begin();
  sample.for_each_wanted([&](std::size_t b, std::size_t before) {
    const std::size_t end = before + sample.counts[b];
    auto done = begin;  // everything before it is in its final place
    while (found.size() < sample.ranks.size() && sample.ranks[found.size()] < end) {
      if (b < kEqualBuckets) {
        found.push_back(value_of(b));
        continue;
      }
      const auto at = begin + static_cast<std::ptrdiff_t>(sample.ranks[found.size()] - before);
      std::nth_element(done, at, begin + sample.counts[b]);
      found.push_back(*at);
      done = at + 1;
    }
    if (b >= kEqualBuckets) begin += sample.counts[b];
  });
  return found;
}

Summary summarise(const Sample& sample, std::span<const std::int64_t> candidates) {
  Summary summary;
  summary.count = static_cast<std::int64_t>(sample.count);
  summary.excluded = static_cast<std::int64_t>(sample.none);
  if (sample.count == 0) return summary;
  const std::vector<std::size_t>& ranks = sample.ranks;
  const std::vector<std::int64_t> found = select(sample, candidates);
  const auto at = [&](std::size_t rank) {
    return found[static_cast<std::size_t>(std::lower_bound(ranks.begin(), ranks.end(), rank) -
                                          ranks.begin())];
  };
  for (std::size_t s = 0; s < kStatistics; ++s) {
    const auto q = statistic_quantile(static_cast<Statistic>(s));
    if (!q) {
      summary.value_ps[s] = to_double(sample.sum) / static_cast<double>(sample.count);
      continue;
    }
    const Position p = position_of(*q, sample.count);
    summary.value_ps[s] = between(at(p.rank), at(std::min(p.rank + 1, sample.count - 1)), p.part);
  }
  return summary;
}

/// Adds `value + 1` of all rows and of the marked ones, which is 0 for rows without a value. 128 bits for
/// each would take as long as the rest of a pass, so that they are used only where 64 might not do.
void add_sums(std::span<const std::int64_t> part, const std::uint8_t* mark, Sample& all, Sample& marked) {
  std::uint64_t sum = 0;
  std::uint64_t sum_marked = 0;
  std::uint64_t seen = 0;
  for (std::size_t r = 0; r < part.size(); ++r) {
    const auto one_more = static_cast<std::uint64_t>(part[r] + 1);
    seen |= one_more;
    sum += one_more;
    sum_marked += one_more & (std::uint64_t{0} - mark[r]);
  }
  if (std::bit_width(seen) + std::bit_width(part.size()) < 64) {
    all.sum += sum;
    marked.sum += sum_marked;
    return;
  }
  for (std::size_t r = 0; r < part.size(); ++r) {
    all.sum += part[r] + 1;
    if (mark[r] != 0) marked.sum += part[r] + 1;
  }
}

/// Counts the values of all rows and of the marked ones.
void count(const MarkedColumn& column, Sample& all, Sample& marked) {
  std::array<std::array<std::uint32_t, 2>, kBuckets> counts{};  // by mark
  const std::uint8_t* mark = column.marks.data();
  for (const std::span<const std::int64_t> part : column.parts) {
    add_sums(part, mark, all, marked);
    for (const std::int64_t value : part) ++counts[bucket_of(value)][*mark++];
  }
  for (std::size_t b = 0; b < kBuckets; ++b) {
    all.counts[b] = counts[b][0] + counts[b][1];
    marked.counts[b] = counts[b][1];
  }
}

}  // namespace

double sorted_quantile(std::span<const std::int64_t> sorted, double q) {
  FT_CHECK(!sorted.empty());
  const Position p = position_of(q, sorted.size());
  const std::size_t next = std::min(p.rank + 1, sorted.size() - 1);
  return between(sorted[p.rank], sorted[next], p.part);
}

double quantile_of(std::span<std::int64_t> values, double q) {
  FT_CHECK(!values.empty());
  const Position p = position_of(q, values.size());
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(p.rank);
  std::nth_element(values.begin(), at, values.end());
  return between(*at, at + 1 == values.end() ? *at : *std::min_element(at + 1, values.end()), p.part);
}

MarkedSummaries exact_summaries(const MarkedColumn& column) {
  FT_CHECK(column.marks.size() < 0xffffffffu);
  Sample all;
  Sample marked;
  count(column, all, marked);
  all.ask();
  marked.ask();
  std::array<bool, kBuckets> wanted{};
  for (const Sample* sample : {&all, &marked})
    sample->for_each_wanted([&](std::size_t b, std::size_t) { wanted[b] = b >= kEqualBuckets; });
  std::size_t size = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) size += wanted[b] ? all.counts[b] : 0;
  // Without branches, since nobody can guess which values are wanted; the last place takes those that are
  // not.
  std::vector<std::int64_t> candidates(size + 1);
  std::vector<std::int64_t> candidates_marked(size + 1);
  std::int64_t* next = candidates.data();
  std::int64_t* next_marked = candidates_marked.data();
  const std::uint8_t* mark = column.marks.data();
  for (const std::span<const std::int64_t> part : column.parts) {
    for (const std::int64_t value : part) {
      const int is_wanted = wanted[bucket_of(value)] ? 1 : 0;
      *next = *next_marked = value;
      next += is_wanted;
      next_marked += is_wanted & *mark++;
    }
  }
  return {summarise(all, {candidates.data(), next}),
          summarise(marked, {candidates_marked.data(), next_marked})};
}

Summary exact_summary(std::span<const std::int64_t> values_ps) {
  const std::vector<std::uint8_t> marks(values_ps.size());
  return exact_summaries({{values_ps}, marks}).all;
}

}  // namespace foretoken

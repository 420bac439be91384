#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "sim/base/check.hpp"
#include "sim/metrics/metric.hpp"
#include "sim/metrics/wide.hpp"

namespace foretoken {

/// Bound on the relative error of a histogram's quantiles: half a bucket (1/256 of its lower end).
inline constexpr double kHistogramError = 1.0 / 256;

/// Counts of picosecond values in log-linear buckets: 128 per octave, exact below 256. Octaves are allocated
/// when first used, 1 KiB each. Negative values are our bug.
class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram& other);
  Histogram(Histogram&&) = default;
  Histogram& operator=(const Histogram& other);
  Histogram& operator=(Histogram&&) = default;

  /// Counts `value_ps` n times.
  void add(std::int64_t value_ps, std::int64_t n = 1);
  /// Counts `first + j * growth` n times each, j from 0 to `repeats` - 1: equal to the loop, in time
  /// proportional to the buckets touched.
  void add_progression(std::int64_t first_ps, std::int64_t growth_ps, std::int64_t repeats, std::int64_t n);
  /// Adds all that the other one counted.
  void merge(const Histogram& other);

  std::int64_t count() const { return count_; }
  std::int64_t max_ps() const { return max_; }
  /// Exact: sum over count; 0 when empty.
  double mean_ps() const;
  /// The q-quantile, with numpy's linear rule between order statistics, each known to within
  /// `kHistogramError`; 0 when empty.
  double quantile_ps(double q) const;
  /// Every statistic, marked as not exact.
  Summary summary() const;
  /// Number of values up to `value_ps`, to within its bucket.
  std::int64_t count_up_to(std::int64_t value_ps) const;
  /// Bytes allocated.
  std::size_t bytes() const;

 private:
  static constexpr int kBits = 7;
  static constexpr std::size_t kPerOctave = std::size_t{1} << kBits;
  static constexpr std::size_t kOctaves = 64 - kBits;
  using Octave = std::array<std::int64_t, kPerOctave>;

  static std::size_t bucket_of(std::int64_t value);
  static std::int64_t bucket_low(std::size_t bucket);
  static std::int64_t bucket_high(std::size_t bucket);
  std::int64_t& slot(std::size_t bucket);
  double order_statistic(std::int64_t rank) const;

  std::array<std::unique_ptr<Octave>, kOctaves> octaves_;
  std::int64_t count_ = 0;
  std::int64_t max_ = 0;
  Wide sum_ = 0;
};

inline std::size_t Histogram::bucket_of(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const int width = static_cast<int>(std::bit_width(bits));
  if (width <= kBits) return static_cast<std::size_t>(bits);
  const int shift = width - kBits - 1;
  // The leading bit of the mantissa is always set: adding it moves each octave one row of buckets up.
  return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(bits >> shift);
}

inline void Histogram::add(std::int64_t value_ps, std::int64_t n) {
  FT_CHECK(value_ps >= 0 && n >= 0, value_ps, n);
  if (n == 0) return;
  slot(bucket_of(value_ps)) += n;
  count_ += n;
  max_ = std::max(max_, value_ps);
  sum_ += wide_product(value_ps, n);
}

inline std::int64_t& Histogram::slot(std::size_t bucket) {
  std::unique_ptr<Octave>& octave = octaves_[bucket >> kBits];
  if (!octave) [[unlikely]]
    octave = std::make_unique<Octave>();
  return (*octave)[bucket & (kPerOctave - 1)];
}

}  // namespace foretoken

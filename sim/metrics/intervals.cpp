#include "sim/metrics/intervals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/base/check.hpp"
#include "sim/core/random.hpp"
#include "sim/metrics/quantiles.hpp"

namespace foretoken {
namespace {

/// Regularised incomplete beta function I_x(a, b) by its continued fraction (Lentz's method; Numerical
/// Recipes, 6.4).
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
  constexpr double tiny = 1e-300;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x)) /
      a;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < tiny ? tiny : d);
  double fraction = d;
  for (int m = 1; m < 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      c = 1 + term / c;
      if (std::abs(d) < tiny) d = tiny;
      if (std::abs(c) < tiny) c = tiny;
      d = 1 / d;
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < 1e-15) break;
  }
  return front * fraction;
}

double student_t_share(double t, double degrees) {
  const double tail = 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t));
  return t >= 0 ? 1 - tail : tail;
}

/// Starts of the blocks of one resample: a pure function of the seed, the resample and the position.
class Blocks {
 public:
  Blocks(std::int64_t n, std::int64_t length, std::uint64_t seed)
      : n_(n), length_(length), count_((n + length - 1) / length), stream_(seed, 0x626f6f74u) {}
  std::int64_t count() const { return count_; }
  std::int64_t begin(std::int64_t resample, std::int64_t block) const {
    return stream_.integer(static_cast<std::uint64_t>(resample * count_ + block), 0, n_ - length_);
  }
  /// The last block is cut so that a resample has n values.
  std::int64_t length(std::int64_t block) const { return std::min(length_, n_ - block * length_); }

 private:
  std::int64_t n_;
  std::int64_t length_;
  std::int64_t count_;
  RandomStream stream_;
};

std::vector<double> resampled_means(std::span<const std::int64_t> values, const Blocks& blocks,
                                    std::int64_t resamples) {
  std::vector<double> sums(values.size() + 1);
  for (std::size_t v = 0; v < values.size(); ++v) sums[v + 1] = sums[v] + static_cast<double>(values[v]);
  std::vector<double> means;
  for (std::int64_t r = 0; r < resamples; ++r) {
    double sum = 0;
    for (std::int64_t b = 0; b < blocks.count(); ++b) {
      const auto begin = static_cast<std::size_t>(blocks.begin(r, b));
      sum += sums[begin + static_cast<std::size_t>(blocks.length(b))] - sums[begin];
    }
    means.push_back(sum / static_cast<double>(values.size()));
  }
  return means;
}

/// Values that lie between two bounds are drawn one by one; those below are only counted. Most of a resample
/// then costs one subtraction per block.
class QuantileResampler {
 public:
  QuantileResampler(std::span<const std::int64_t> values, double quantile, std::int64_t low,
                    std::int64_t high)
      : before_(values.size() + 1) {
    const double position = quantile * static_cast<double>(values.size() - 1);
    rank_ = static_cast<std::int64_t>(position);
    part_ = position - static_cast<double>(rank_);
    for (std::size_t v = 0; v < values.size(); ++v) {
      const bool is_below = values[v] < low;
      const bool is_inside = !is_below && values[v] <= high;
      before_[v + 1] = {before_[v].below + (is_below ? 1 : 0), before_[v].inside + (is_inside ? 1 : 0)};
      if (is_inside) picked_.push_back(values[v]);
    }
  }
  /// The resample's quantile, or nothing when it lies outside the bounds.
  std::optional<double> quantile(const Blocks& blocks, std::int64_t resample) {
    drawn_.clear();
    std::int64_t below = 0;
    for (std::int64_t b = 0; b < blocks.count(); ++b) {
      const auto begin = static_cast<std::size_t>(blocks.begin(resample, b));
      const std::size_t end = begin + static_cast<std::size_t>(blocks.length(b));
      below += before_[end].below - before_[begin].below;
      // Few in most blocks, so that a loop is faster than a copy.
      for (std::int32_t at = before_[begin].inside; at < before_[end].inside; ++at)
        drawn_.push_back(picked_[static_cast<std::size_t>(at)]);
    }
    const std::int64_t at = rank_ - below;
    const std::int64_t last = part_ > 0 ? at + 1 : at;
    if (at < 0 || last >= static_cast<std::int64_t>(drawn_.size())) return std::nullopt;
    const auto place = drawn_.begin() + at;
    std::nth_element(drawn_.begin(), place, drawn_.end());
    const auto value = static_cast<double>(*place);
    if (part_ == 0) return value;
    return value + (static_cast<double>(*std::min_element(place + 1, drawn_.end())) - value) * part_;
  }

 private:
  struct Before {
    std::int32_t below = 0;
    std::int32_t inside = 0;
  };
  std::int64_t rank_ = 0;
  double part_ = 0;
  std::vector<Before> before_;  // of the first values, how many are below and inside
  std::vector<std::int64_t> picked_;
  std::vector<std::int64_t> drawn_;
};

std::vector<double> resampled_quantiles(std::span<const std::int64_t> values, double quantile,
                                        const Blocks& blocks, std::int64_t block, std::int64_t resamples) {
  std::vector<std::int64_t> ordered(values.begin(), values.end());
  const auto ranked = [&](double rank) {
    const auto at = ordered.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(ordered.begin(), at, ordered.end());
    return *at;
  };
  const double last = static_cast<double>(values.size()) - 1;
  const double center = quantile * last;
  // Standard errors of a rank, were each block of values one value. Few resamples lie beyond two of them and
  // hardly one beyond six; those are drawn again from wider bounds, which changes nothing but time.
  const double error = std::sqrt(static_cast<double>(values.size()) * quantile * (1 - quantile) *
                                 std::sqrt(static_cast<double>(block)));
  const std::array<double, 3> reaches = {2 * error + 2, 6 * error + 2, last};
  std::array<std::optional<QuantileResampler>, 3> resamplers;
  std::vector<double> quantiles;
  for (std::int64_t r = 0; r < resamples; ++r) {
    std::optional<double> value;
    for (std::size_t i = 0; i < reaches.size() && !value; ++i) {
      if (!resamplers[i])
        resamplers[i].emplace(values, quantile, ranked(std::max(0.0, center - reaches[i])),
                              ranked(std::min(last, center + reaches[i])));
      value = resamplers[i]->quantile(blocks, r);
    }
    FT_CHECK(value.has_value());
    quantiles.push_back(*value);
  }
  return quantiles;
}

double sorted_share(const std::vector<double>& sorted, double share) {
  const double position = share * static_cast<double>(sorted.size() - 1);
  const auto at = static_cast<std::size_t>(position);
  const std::size_t next = std::min(at + 1, sorted.size() - 1);
  return sorted[at] + (sorted[next] - sorted[at]) * (position - static_cast<double>(at));
}

}  // namespace

double student_t_quantile(double p, std::int64_t degrees) {
  FT_CHECK(p > 0 && p < 1 && degrees >= 1, p, degrees);
  if (p == 0.5) return 0;
  if (p < 0.5) return -student_t_quantile(1 - p, degrees);
  double low = 0;
  double high = 1;
  while (student_t_share(high, static_cast<double>(degrees)) < p) high *= 2;
  for (int halvings = 0; halvings < 200 && low < high; ++halvings) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) break;
    (student_t_share(middle, static_cast<double>(degrees)) < p ? low : high) = middle;
  }
  return high;
}

ReplicateMean replicate_mean(std::span<const double> values, double confidence) {
  FT_CHECK(!values.empty());
  const auto n = static_cast<double>(values.size());
  ReplicateMean result;
  for (const double value : values) result.mean += value / n;
  if (values.size() == 1) {
    result.half_width = std::numeric_limits<double>::infinity();
    return result;
  }
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const auto degrees = static_cast<std::int64_t>(values.size()) - 1;
  result.half_width = student_t_quantile(0.5 + 0.5 * confidence, degrees) * std::sqrt(squares / (n - 1) / n);
  return result;
}

std::int64_t block_length(std::int64_t n, double mean_in_system) {
  const double wanted = std::max(std::cbrt(static_cast<double>(n)), mean_in_system);
  const double most = std::max(1.0, static_cast<double>(n) / 10);
  return static_cast<std::int64_t>(std::ceil(std::min(wanted, most)));
}

std::optional<Interval> bootstrap_interval(std::span<const std::int64_t> values,
                                           std::optional<double> quantile, const BootstrapOptions& options) {
  const auto n = static_cast<std::int64_t>(values.size());
  FT_CHECK(n < std::numeric_limits<std::int32_t>::max() && options.resamples >= 2, n, options.resamples);
  if (n < 20) return std::nullopt;
  const std::int64_t block = std::min(n, options.block > 0 ? options.block : block_length(n, 0));
  const Blocks blocks(n, block, options.seed);
  std::vector<double> estimates =
      quantile ? resampled_quantiles(values, *quantile, blocks, block, options.resamples)
               : resampled_means(values, blocks, options.resamples);
  std::sort(estimates.begin(), estimates.end());
  const double tail = 0.5 * (1 - options.confidence);
  Interval interval;
  interval.low = sorted_share(estimates, tail);
  interval.high = sorted_share(estimates, 1 - tail);
  if (quantile) {
    std::vector<std::int64_t> ordered(values.begin(), values.end());
    interval.value = quantile_of(ordered, *quantile);
  } else {
    for (const std::int64_t value : values) interval.value += static_cast<double>(value);
    interval.value /= static_cast<double>(n);
  }
  return interval;
}

}  // namespace foretoken

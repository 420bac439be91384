#include "sim/metrics/histogram.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {

Histogram::Histogram(const Histogram& other) { *this = other; }

Histogram& Histogram::operator=(const Histogram& other) {
  if (this == &other) return *this;
  for (std::size_t o = 0; o < kOctaves; ++o)
    octaves_[o] = other.octaves_[o] ? std::make_unique<Octave>(*other.octaves_[o]) : nullptr;
  count_ = other.count_;
  max_ = other.max_;
  sum_ = other.sum_;
  return *this;
}

std::int64_t Histogram::bucket_low(std::size_t bucket) {
  const std::size_t octave = bucket >> kBits;
  if (octave == 0) return static_cast<std::int64_t>(bucket);
  return static_cast<std::int64_t>(((bucket & (kPerOctave - 1)) + kPerOctave) << (octave - 1));
}

std::int64_t Histogram::bucket_high(std::size_t bucket) {
  const std::size_t octave = bucket >> kBits;
  const std::int64_t width = octave == 0 ? 1 : std::int64_t{1} << (octave - 1);
  return bucket_low(bucket) + (width - 1);
}

void Histogram::add_progression(std::int64_t first_ps, std::int64_t growth_ps, std::int64_t repeats,
                                std::int64_t n) {
  if (repeats <= 0 || n == 0) return;
  if (growth_ps == 0 || repeats == 1) return add(first_ps, repeats * n);
  const std::int64_t last = first_ps + growth_ps * (repeats - 1);
  FT_CHECK(first_ps >= 0 && last >= 0 && n > 0, first_ps, growth_ps, repeats, n);
  for (std::int64_t done = 0; done < repeats;) {
    const std::int64_t value = first_ps + growth_ps * done;
    const std::size_t bucket = bucket_of(value);
    const std::int64_t room = growth_ps > 0 ? bucket_high(bucket) - value : value - bucket_low(bucket);
    const std::int64_t stride = growth_ps > 0 ? growth_ps : -growth_ps;
    const std::int64_t left = repeats - done;
    // Most windows stay within one bucket, which a product tells more cheaply than a division.
    const std::int64_t here = stride * (left - 1) <= room ? left : std::min(left, room / stride + 1);
    slot(bucket) += here * n;
    done += here;
  }
  count_ += repeats * n;
  max_ = std::max({max_, first_ps, last});
  sum_ += (wide_product(first_ps, repeats) + wide_product(growth_ps, repeats * (repeats - 1) / 2)) * n;
}

void Histogram::merge(const Histogram& other) {
  for (std::size_t o = 0; o < kOctaves; ++o) {
    if (!other.octaves_[o]) continue;
    if (!octaves_[o]) octaves_[o] = std::make_unique<Octave>();
    for (std::size_t b = 0; b < kPerOctave; ++b) (*octaves_[o])[b] += (*other.octaves_[o])[b];
  }
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::mean_ps() const {
  return count_ == 0 ? 0.0 : to_double(sum_) / static_cast<double>(count_);
}

double Histogram::order_statistic(std::int64_t rank) const {
  if (rank >= count_ - 1) return static_cast<double>(max_);
  std::int64_t before = 0;
  for (std::size_t o = 0; o < kOctaves; ++o) {
    if (!octaves_[o]) continue;
    for (std::size_t b = 0; b < kPerOctave; ++b) {
      before += (*octaves_[o])[b];
      if (before <= rank) continue;
      const std::size_t bucket = (o << kBits) + b;
      const double middle =
          0.5 * (static_cast<double>(bucket_low(bucket)) + static_cast<double>(bucket_high(bucket)));
      return std::min(middle, static_cast<double>(max_));
    }
  }
  return static_cast<double>(max_);
}

double Histogram::quantile_ps(double q) const {
  if (count_ == 0) return 0.0;
  const double position = q * static_cast<double>(count_ - 1);
  const auto rank = static_cast<std::int64_t>(position);
  const double low = order_statistic(rank);
  const double part = position - static_cast<double>(rank);
  return part == 0.0 ? low : low + (order_statistic(rank + 1) - low) * part;
}

Summary Histogram::summary() const {
  Summary summary;
  summary.count = count_;
  summary.exact = false;
  for (std::size_t s = 0; s < kStatistics; ++s) {
    const auto q = statistic_quantile(static_cast<Statistic>(s));
    summary.value_ps[s] = q ? quantile_ps(*q) : mean_ps();
  }
  return summary;
}

std::int64_t Histogram::count_up_to(std::int64_t value_ps) const {
  if (value_ps < 0) return 0;
  const std::size_t last = bucket_of(value_ps);
  std::int64_t count = 0;
  for (std::size_t o = 0; o <= last >> kBits; ++o) {
    if (!octaves_[o]) continue;
    const std::size_t end = o == last >> kBits ? (last & (kPerOctave - 1)) + 1 : kPerOctave;
    for (std::size_t b = 0; b < end; ++b) count += (*octaves_[o])[b];
  }
  return count;
}

std::size_t Histogram::bytes() const {
  std::size_t bytes = sizeof(*this);
  for (const auto& octave : octaves_)
    if (octave) bytes += sizeof(Octave);
  return bytes;
}

}  // namespace foretoken

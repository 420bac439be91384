#include "sim/metrics/series.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

std::int64_t duration_of(const SeriesSample& sample, std::int64_t repeats) {
  return sample.first.count() * repeats + sample.growth.count() * (repeats * (repeats - 1) / 2);
}

/// How many repeats end before `until_ps` after the begin: bisection over the closed form.
std::int64_t repeats_before(const SeriesSample& sample, std::int64_t until_ps) {
  std::int64_t low = 0;
  std::int64_t high = sample.repeats;
  while (low < high) {
    const std::int64_t middle = (low + high + 1) / 2;
    if (duration_of(sample, middle) < until_ps)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

void add_part(SeriesBucket& bucket, const SeriesSample& sample, std::int64_t duration_ps,
              std::int64_t repeats) {
  const auto weight = static_cast<double>(duration_ps);
  bucket.kv_held_ps += weight * static_cast<double>(sample.kv_held);
  bucket.resident_ps += weight * static_cast<double>(sample.resident);
  bucket.waiting_ps += weight * static_cast<double>(sample.waiting);
  bucket.busy_ps += duration_ps;
  bucket.kv_held_max = std::max(bucket.kv_held_max, sample.kv_held);
  bucket.resident_max = std::max(bucket.resident_max, sample.resident);
  bucket.waiting_max = std::max(bucket.waiting_max, sample.waiting);
  bucket.emitted_tokens += repeats * sample.emitted_per_repeat;
}

}  // namespace

void SeriesBucket::merge(const SeriesBucket& other) {
  kv_held_ps += other.kv_held_ps;
  resident_ps += other.resident_ps;
  waiting_ps += other.waiting_ps;
  busy_ps += other.busy_ps;
  kv_held_max = std::max(kv_held_max, other.kv_held_max);
  resident_max = std::max(resident_max, other.resident_max);
  waiting_max = std::max(waiting_max, other.waiting_max);
  arrivals += other.arrivals;
  finished += other.finished;
  ended += other.ended;
  preemptions += other.preemptions;
  emitted_tokens += other.emitted_tokens;
}

TimeSeries::TimeSeries(std::int64_t buckets_max) : buckets_max_(buckets_max) {
  FT_CHECK(buckets_max >= 2 && buckets_max % 2 == 0, buckets_max);
  buckets_.reserve(static_cast<std::size_t>(buckets_max));
}

void TimeSeries::add(const SeriesSample& sample) {
  const std::int64_t begin = picoseconds(sample.begin);
  const std::int64_t end = begin + duration_of(sample, sample.repeats);
  // The last bucket comes first, so that buckets are as wide as they will be when the parts are laid.
  if (end < begin_ps_ || end >= end_ps_) move_to(end);
  if (begin >= begin_ps_) return add_part(*current_, sample, end - begin, sample.repeats);
  std::int64_t at = begin;
  std::int64_t repeats_done = 0;
  while (at < end || repeats_done < sample.repeats) {
    SeriesBucket& bucket = move_to(at);
    const std::int64_t until = std::min(end, end_ps_);
    // A repeat that ends on a border belongs to the bucket that begins there.
    const std::int64_t repeats = end < end_ps_ ? sample.repeats : repeats_before(sample, end_ps_ - begin);
    add_part(bucket, sample, until - at, repeats - repeats_done);
    repeats_done = repeats;
    at = until;
  }
}

SeriesBucket& TimeSeries::move_to(std::int64_t ps) {
  FT_CHECK(ps >= 0, ps);
  if (ps >= begin_ps_ && ps < end_ps_) return *current_;
  while (ps / width_ps_ >= buckets_max_) widen();
  const auto bucket = static_cast<std::size_t>(ps / width_ps_);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  current_ = &buckets_[bucket];
  begin_ps_ = static_cast<std::int64_t>(bucket) * width_ps_;
  end_ps_ = begin_ps_ + width_ps_;
  return *current_;
}

void TimeSeries::widen() {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (b % 2 == 0)
      buckets_[b / 2] = buckets_[b];
    else
      buckets_[b / 2].merge(buckets_[b]);
  }
  buckets_.resize((buckets_.size() + 1) / 2);
  width_ps_ *= 2;
}

}  // namespace foretoken

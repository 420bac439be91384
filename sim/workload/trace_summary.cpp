#include "sim/workload/trace_summary.hpp"

#include <cmath>

#include "sim/core/random.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

void count(std::map<std::string, std::int64_t>& counts, const std::string& name) {
  if (!name.empty()) ++counts[name];
}

}  // namespace

void TokenHistogram::add(std::int32_t value) {
  ++counts_[value];
  ++count_;
  sum_ += value;
}

std::int32_t TokenHistogram::max() const { return counts_.empty() ? 0 : counts_.rbegin()->first; }

double TokenHistogram::mean() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

double TokenHistogram::percentile(double p) const {
  if (count_ == 0) return 0.0;
  const double rank = p / 100.0 * static_cast<double>(count_ - 1);
  const auto below = static_cast<std::int64_t>(rank);
  const double weight = rank - static_cast<double>(below);
  std::int64_t passed = 0;
  double lower = 0.0;
  bool has_lower = false;
  for (const auto& [value, times] : counts_) {
    passed += times;
    if (!has_lower && passed > below) {
      lower = value;
      has_lower = true;
    }
    if (has_lower && (weight == 0.0 || passed > below + 1)) return lower + weight * (value - lower);
  }
  return lower;
}

void TraceSummary::add(const TraceRecord& record) {
  input_.add(record.input_tokens);
  output_.add(record.output_tokens);
  count(classes_, record.slo_class);
  count(tenants_, record.tenant);
  count(sources_, record.source);
  count(models_, record.model);
  if (record.after_id.empty()) {
    add_arrival(record.arrival_ns);
  } else {
    ++closed_loop_;
  }
  add_prefix(record);
  add_ids(record);
}

void TraceSummary::add_ids(const TraceRecord& record) {
  if (!record.after_id.empty() && !ids_.contains(record.after_id)) ++unknown_after_;
  if (!record.id.empty() && !ids_.insert(record.id).second) ++duplicate_ids_;
}

void TraceSummary::add_arrival(std::int64_t arrival_ns) {
  if (arrivals_ == 0) {
    first_ns_ = arrival_ns;
  } else {
    // Welford's update: one pass, no cancellation.
    const double gap = static_cast<double>(arrival_ns - last_ns_);
    const double delta = gap - gap_mean_;
    gap_mean_ += delta / static_cast<double>(arrivals_);
    gap_squares_ += delta * (gap - gap_mean_);
  }
  last_ns_ = arrival_ns;
  ++arrivals_;
  const std::int64_t second = (arrival_ns - first_ns_) / kNanosecondsPerSecond;
  if (second != second_) {
    count_squares_ += static_cast<double>(second_count_) * static_cast<double>(second_count_);
    peak_ = std::max(peak_, second_count_);
    second_count_ = 0;
    second_ = second;
  }
  if (second_count_++ == 0) ++busy_seconds_;
}

void TraceSummary::add_prefix(const TraceRecord& record) {
  // A block is reused only behind reused blocks; chaining makes equal hashes behind different beginnings
  // different.
  const std::int32_t block_tokens = record.block_tokens;
  if (block_tokens > 0) blocks_ += (record.input_tokens + block_tokens - 1) / block_tokens;
  std::uint64_t chain = static_cast<std::uint64_t>(record.block_tokens);
  bool reused = true;
  for (const std::uint64_t hash : record.prefix_hashes) {
    chain = mix(chain ^ mix(hash));
    reused = !seen_.insert(chain).second && reused;
    hits_ += reused;
  }
}

std::int64_t TraceSummary::span_ns() const { return last_ns_ - first_ns_; }

double TraceSummary::rate_per_s() const {
  return span_ns() == 0 ? 0.0 : static_cast<double>(arrivals_) / (static_cast<double>(span_ns()) * 1e-9);
}

double TraceSummary::arrival_cv() const {
  if (arrivals_ < 2 || gap_mean_ == 0.0) return 0.0;
  return std::sqrt(gap_squares_ / static_cast<double>(arrivals_ - 1)) / gap_mean_;
}

double TraceSummary::idle_share() const {
  return arrivals_ == 0 ? 0.0 : 1.0 - static_cast<double>(busy_seconds_) / static_cast<double>(second_ + 1);
}

double TraceSummary::dispersion() const {
  if (arrivals_ == 0) return 0.0;
  const double all = static_cast<double>(second_ + 1);
  const double last = static_cast<double>(second_count_);
  const double mean = static_cast<double>(arrivals_) / all;
  return ((count_squares_ + last * last) / all - mean * mean) / mean;
}

double TraceSummary::prefix_reuse() const {
  return blocks_ == 0 ? 0.0 : static_cast<double>(hits_) / static_cast<double>(blocks_);
}

}  // namespace foretoken

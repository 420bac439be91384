#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "sim/workload/trace_record.hpp"

namespace foretoken {

/// Counts of whole numbers, for exact percentiles in memory that grows with the distinct values only.
class TokenHistogram {
 public:
  /// Counts a value.
  void add(std::int32_t value);
  std::int64_t count() const { return count_; }
  /// The largest value; 0 when empty.
  std::int32_t max() const;
  /// Arithmetic mean; 0 when empty.
  double mean() const;
  /// Percentile `p` in [0, 100] with linear interpolation between order statistics (numpy's default); 0 when
  /// empty.
  double percentile(double p) const;

 private:
  std::map<std::int32_t, std::int64_t> counts_;
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
};

/// What `trace inspect` tells about the rows.
class TraceSummary {
 public:
  /// Counts a row; rows come in the order of the trace.
  void add(const TraceRecord& record);

  std::int64_t requests() const { return input_.count(); }
  /// Between the first and the last arrival.
  std::int64_t span_ns() const;
  /// Requests over the span; 0 when there is none.
  double rate_per_s() const;
  /// Standard deviation over mean of the gaps between arrivals (population).
  double arrival_cv() const;
  /// Most arrivals in one second counted from the first arrival, and the share of seconds without any.
  std::int64_t peak_per_s() const { return std::max(peak_, second_count_); }
  double idle_share() const;
  /// Variance over mean of the arrivals in each second; 1 for a Poisson process.
  double dispersion() const;
  /// Share of prompt blocks, those without a hash included, that an infinite cache would have held; 0 without
  /// prefix data.
  double prefix_reuse() const;
  bool has_prefixes() const { return !seen_.empty(); }
  const TokenHistogram& input() const { return input_; }
  const TokenHistogram& output() const { return output_; }
  /// Requests that wait for another one to end.
  std::int64_t closed_loop() const { return closed_loop_; }
  /// Rows whose id an earlier row has, and rows that wait for a request that no earlier row is.
  std::int64_t duplicate_ids() const { return duplicate_ids_; }
  std::int64_t unknown_after() const { return unknown_after_; }
  /// Requests by class, tenant, source and model, in alphabetical order.
  const std::map<std::string, std::int64_t>& classes() const { return classes_; }
  const std::map<std::string, std::int64_t>& tenants() const { return tenants_; }
  const std::map<std::string, std::int64_t>& sources() const { return sources_; }
  const std::map<std::string, std::int64_t>& models() const { return models_; }

 private:
  void add_arrival(std::int64_t arrival_ns);
  void add_prefix(const TraceRecord& record);
  void add_ids(const TraceRecord& record);

  TokenHistogram input_;
  TokenHistogram output_;
  std::map<std::string, std::int64_t> classes_, tenants_, sources_, models_;
  std::int64_t closed_loop_ = 0;
  std::int64_t duplicate_ids_ = 0;
  std::int64_t unknown_after_ = 0;
  std::unordered_set<std::string> ids_;
  std::int64_t arrivals_ = 0;
  std::int64_t first_ns_ = 0;
  std::int64_t last_ns_ = 0;
  double gap_mean_ = 0.0;
  double gap_squares_ = 0.0;
  std::int64_t second_ = 0;
  std::int64_t second_count_ = 0;
  std::int64_t busy_seconds_ = 0;
  std::int64_t peak_ = 0;
  double count_squares_ = 0.0;
  std::int64_t blocks_ = 0;
  std::int64_t hits_ = 0;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace foretoken

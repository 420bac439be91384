#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/workload/trace_format.hpp"
#include "sim/workload/trace_record.hpp"
#include "sim/workload/warning.hpp"

namespace foretoken {

/// What to do with rows of one arrival time. `uniform` moves them to points drawn uniformly from the tick
/// that starts there (draws are a pure function of the row's number): a log with 3-second stamps then has
/// arrivals that look like those it was made from. The tick is the smallest distance between distinct times
/// seen so far.
enum class SpreadTies : std::uint8_t { none, uniform };

/// How to read a trace.
struct TraceReadOptions {
  TraceFormat format = TraceFormat::detect;
  /// For plain CSV files whose columns have other names than ours.
  std::vector<ColumnName> columns;
  /// Rows out of order are sorted by arrival (ties keep the order of the file) instead of refused. Needs
  /// memory for the whole trace; everything else reads in constant memory.
  bool sort = false;
  SpreadTies spread_ties = SpreadTies::none;
  ZeroOutput zero_output = ZeroOutput::by_format;
};

/// What reading has met so far; complete when `next` has returned false.
struct TraceCounts {
  /// Rows of the file, dropped ones included.
  std::int64_t rows = 0;
  /// Rows handed out.
  std::int64_t kept = 0;
  /// Rows without output tokens that were dropped.
  std::int64_t zero_output_dropped = 0;
  /// Rows whose prefix hashes said more than the prompt's length and were cut to it (Bailian only; elsewhere
  /// an error).
  std::int64_t hashes_cut = 0;
  /// Rows that `sort` moved.
  std::int64_t out_of_order = 0;
  /// Rows with an arrival of their own, and how many distinct ones there are as the file has them.
  std::int64_t timed = 0;
  std::int64_t distinct_times = 0;
  /// Rows with prefix hashes.
  std::int64_t with_prefixes = 0;
};

/// What is known about a trace besides its rows.
struct TraceInfo {
  std::string path;
  TraceFormat format = TraceFormat::detect;
  /// Tokens in a prefix block, by the format or the header; 0 without prefix data or when rows differ.
  std::int32_t block_tokens = 0;
  /// The header line of a canonical trace (source, licence and what else it says); null without one.
  Json header;
  /// Columns of a CSV file that have no meaning here.
  std::vector<std::string> ignored_columns;
  SpreadTies spread_ties = SpreadTies::none;
  TraceCounts counts;
};

/// Reads a trace row by row: detects the format, converts units, drops what the format's rule drops, checks
/// the order. Every fault is an InputError with file and line.
class TraceReader {
 public:
  /// "-" is standard input; `.gz` is inflated.
  explicit TraceReader(const std::string& path, const TraceReadOptions& options = {});
  /// Reads from memory; `name` stands for the file in errors.
  static TraceReader from_text(std::string text, std::string name, const TraceReadOptions& options = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  /// The next row, in the order of arrival; rows with `after_id` come where the file has them. False at the
  /// end.
  bool next(TraceRecord& record);
  const TraceInfo& info() const;
  /// Doubts about what has been read so far.
  std::vector<WorkloadWarning> warnings() const;

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace foretoken

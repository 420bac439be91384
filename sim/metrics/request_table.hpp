#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/core/request.hpp"
#include "sim/metrics/metric.hpp"
#include "sim/metrics/quantiles.hpp"

namespace foretoken {

/// Columns of finished requests, for exact percentiles: 100 bytes a request, in chunks that never move.
class RequestTable {
 public:
  static constexpr std::int64_t kChunkRows = 21824;
  /// A finished request's values by Metric (-1: not defined), its arrival, group and goodness.
  void append(RequestId id, std::uint32_t cell, bool good, std::int64_t arrival_ps,
              const std::array<std::int64_t, kRequestMetrics>& value_ps);
  std::int64_t size() const { return size_; }
  std::int64_t value_ps(Metric metric, std::int64_t row) const;
  std::int64_t arrival_ps(std::int64_t row) const;
  std::uint32_t cell(std::int64_t row) const;
  bool good(std::int64_t row) const;
  RequestId id(std::int64_t row) const;
  /// Rows in order of request id (order of arrival).
  std::vector<std::uint32_t> rows_by_id() const;
  /// The metric's values in the order of the table, with a mark for each row.
  MarkedColumn column(Metric metric, std::span<const std::uint8_t> marks) const;
  /// Marks the rows that arrived in [begin, end).
  std::vector<std::uint8_t> mark_arrivals(std::int64_t begin_ps, std::int64_t end_ps) const;
  /// Marks the rows whose cell has `selected` set.
  std::vector<std::uint8_t> mark_cells(std::span<const char> selected) const;
  /// How many of the marked rows are good.
  std::int64_t good_among(std::span<const std::uint8_t> marks) const;
  void clear();

 private:
  // Padding between columns keeps writes to the same row of different columns out of one cache set.
  static constexpr std::size_t kColumn = static_cast<std::size_t>(kChunkRows) + 8;
  struct Chunk {
    std::array<std::array<std::int64_t, kColumn>, kRequestMetrics> values;
    std::array<std::int64_t, kColumn> arrivals;
    std::array<std::uint32_t, kColumn> ids;
    std::array<std::uint32_t, kColumn> cells;  // the top bit says good
  };
  static constexpr std::uint32_t kGood = 0x80000000u;
  std::size_t rows_in(std::size_t chunk) const {
    return static_cast<std::size_t>(
        std::min(kChunkRows, size_ - static_cast<std::int64_t>(chunk) * kChunkRows));
  }
  const Chunk& chunk(std::int64_t row) const { return *chunks_[static_cast<std::size_t>(row / kChunkRows)]; }

  struct Free {
    void operator()(Chunk* chunk) const;
  };
  static std::unique_ptr<Chunk, Free> make_chunk();

  std::vector<std::unique_ptr<Chunk, Free>> chunks_;
  std::int64_t size_ = 0;
};

}  // namespace foretoken

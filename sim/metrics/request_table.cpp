#include "sim/metrics/request_table.hpp"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

}  // namespace

std::unique_ptr<RequestTable::Chunk, RequestTable::Free> RequestTable::make_chunk() {
  // A chunk fills one huge page: first touches of small pages cost 0.16 us a request on a virtual machine.
  static_assert(sizeof(Chunk) <= kHugePage && sizeof(Chunk) > kHugePage * 9 / 10);
  void* memory = std::aligned_alloc(kHugePage, kHugePage);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
  // Advice only: without it the table is slower, not wrong.
  (void)madvise(memory, kHugePage, MADV_HUGEPAGE);
#endif
  return std::unique_ptr<Chunk, Free>(new (memory) Chunk);
}

void RequestTable::Free::operator()(Chunk* chunk) const { std::free(chunk); }

void RequestTable::append(RequestId id, std::uint32_t cell, bool good, std::int64_t arrival_ps,
                          const std::array<std::int64_t, kRequestMetrics>& value_ps) {
  const auto row = static_cast<std::size_t>(size_ % kChunkRows);
  if (row == 0) chunks_.push_back(make_chunk());
  Chunk& chunk = *chunks_.back();
  for (std::size_t m = 0; m < kRequestMetrics; ++m) chunk.values[m][row] = value_ps[m];
  chunk.arrivals[row] = arrival_ps;
  chunk.ids[row] = static_cast<std::uint32_t>(id);
  chunk.cells[row] = cell | (good ? kGood : 0u);
  ++size_;
}

std::int64_t RequestTable::value_ps(Metric metric, std::int64_t row) const {
  return chunk(row).values[index(metric)][static_cast<std::size_t>(row % kChunkRows)];
}

std::int64_t RequestTable::arrival_ps(std::int64_t row) const {
  return chunk(row).arrivals[static_cast<std::size_t>(row % kChunkRows)];
}

std::uint32_t RequestTable::cell(std::int64_t row) const {
  return chunk(row).cells[static_cast<std::size_t>(row % kChunkRows)] & ~kGood;
}

bool RequestTable::good(std::int64_t row) const {
  return (chunk(row).cells[static_cast<std::size_t>(row % kChunkRows)] & kGood) != 0;
}

RequestId RequestTable::id(std::int64_t row) const {
  return static_cast<RequestId>(chunk(row).ids[static_cast<std::size_t>(row % kChunkRows)]);
}

std::vector<std::uint32_t> RequestTable::rows_by_id() const {
  const auto id = [&](std::uint32_t row) { return chunk(row).ids[row % kChunkRows]; };
  std::uint32_t greatest = 0;
  const auto size = static_cast<std::uint32_t>(size_);
  for (std::uint32_t row = 0; row < size; ++row) greatest = std::max(greatest, id(row));
  std::vector<std::uint32_t> rows;
  if (greatest / 4 <= size) {
    // Ids are positions in the source, so that they are nearly dense and need no comparisons.
    constexpr std::uint32_t none = 0xffffffffu;
    std::vector<std::uint32_t> row_of(std::size_t{greatest} + 1, none);
    for (std::uint32_t row = 0; row < size; ++row) row_of[id(row)] = row;
    for (const std::uint32_t row : row_of)
      if (row != none) rows.push_back(row);
    if (rows.size() == size) return rows;
  }
  rows.resize(size);
  std::iota(rows.begin(), rows.end(), 0u);
  std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) { return id(a) < id(b); });
  return rows;
}

MarkedColumn RequestTable::column(Metric metric, std::span<const std::uint8_t> marks) const {
  FT_CHECK(marks.size() == static_cast<std::size_t>(size_), marks.size(), size_);
  MarkedColumn column{{}, marks};
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    column.parts.push_back({chunks_[c]->values[index(metric)].data(), rows_in(c)});
  return column;
}

std::vector<std::uint8_t> RequestTable::mark_arrivals(std::int64_t begin_ps, std::int64_t end_ps) const {
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(size_));
  std::uint8_t* mark = marks.data();
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    for (const std::int64_t arrival : std::span(chunks_[c]->arrivals).first(rows_in(c)))
      *mark++ = (arrival >= begin_ps ? 1 : 0) & (arrival < end_ps ? 1 : 0);
  return marks;
}

std::vector<std::uint8_t> RequestTable::mark_cells(std::span<const char> selected) const {
  std::vector<std::uint8_t> marks(static_cast<std::size_t>(size_));
  std::uint8_t* mark = marks.data();
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    for (const std::uint32_t cell : std::span(chunks_[c]->cells).first(rows_in(c)))
      *mark++ = selected[cell & ~kGood] != 0 ? 1 : 0;
  return marks;
}

std::int64_t RequestTable::good_among(std::span<const std::uint8_t> marks) const {
  std::int64_t good = 0;
  const std::uint8_t* mark = marks.data();
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    for (const std::uint32_t cell : std::span(chunks_[c]->cells).first(rows_in(c)))
      good += (cell >> 31) & *mark++;
  return good;
}

void RequestTable::clear() {
  chunks_.clear();
  chunks_.shrink_to_fit();
  size_ = 0;
}

}  // namespace foretoken

#include "sim/workload/trace_reader.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/core/random.hpp"
#include "sim/workload/row_parser.hpp"
#include "sim/workload/trace_writer.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kUnknown = -1;
// A log counts as quantised when fewer than half of its arrival times are distinct; below this many rows
// nothing is said.
constexpr std::int64_t kQuantisedRowsMin = 100;
// The stream of the draws that spread ties: fixed, so that a trace reads the same in every run.
constexpr RandomStream kSpreadStream(0x666f7265u, 1);

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

/// Lines of a file or of a text in memory, with the same rules.
class TraceLines {
 public:
  explicit TraceLines(const std::string& path) : file_(std::in_place, path) {}
  TraceLines(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}

  bool next(std::string_view& line) {
    if (file_) return file_->next(line);
    if (at_ >= text_.size()) return false;
    ++number_;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    if (line.find('\0') != std::string_view::npos) {
      throw input_error(name_ + ":" + std::to_string(number_), "text", "a NUL byte");
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }

  std::int64_t number() const { return file_ ? file_->line() : number_; }

 private:
  std::optional<LineReader> file_;
  std::string text_;
  std::string name_;
  std::size_t at_ = 0;
  std::int64_t number_ = 0;
};

struct TraceReader::State {
  State(TraceLines lines_in, std::string name, const TraceReadOptions& options_in)
      : lines(std::move(lines_in)), options(options_in) {
    info.path = std::move(name);
    info.spread_ties = options.spread_ties;
    find_format();
  }

  std::string place(std::int64_t line) const { return info.path + ":" + std::to_string(line); }

  /// The next line that is not blank; the one that showed the format comes again.
  bool next_line(std::string_view& line) {
    if (first_line_waits) {
      first_line_waits = false;
      line = first_line;
      return true;
    }
    while (lines.next(line)) {
      if (!is_blank(line)) return true;
    }
    return false;
  }

  void find_format() {
    std::string_view line;
    if (!next_line(line)) throw input_error(info.path, "a trace", "no rows");
    first_line = line;
    first_line_waits = true;
    if (first_line.starts_with("\xef\xbb\xbf")) first_line.erase(0, 3);
    const bool named = options.format == TraceFormat::detect && !options.columns.empty();
    if (named) options.format = TraceFormat::csv;
    info.format =
        options.format == TraceFormat::detect ? detect_format(first_line, info.path) : options.format;
    switch (info.format) {
      case TraceFormat::mooncake:
      case TraceFormat::bailian: parser = make_hash_trace_parser(info.format, info); break;
      case TraceFormat::canonical: parser = make_canonical_parser(info); break;
      default: parser = make_csv_parser(info.format, options.columns, info); break;
    }
  }

  bool keeps_zero_output() const {
    return options.zero_output == ZeroOutput::by_format ? facts(info.format).keeps_zero_output
                                                        : options.zero_output == ZeroOutput::keep;
  }

  /// The next row that is kept, on the file's own clock.
  bool next_row(TraceRecord& record) {
    std::string_view line;
    while (next_line(line)) {
      record.clear();
      record.line = lines.number();
      if (!parser->parse(line, record.line, record)) continue;
      ++info.counts.rows;
      if (record.output_tokens == 0 && !keeps_zero_output()) {
        ++info.counts.zero_output_dropped;
        continue;
      }
      if (record.input_tokens < 1) throw input_error(place(record.line), "at least one input token", "0");
      if (record.output_tokens == 0) record.max_new_tokens = 0;
      if (!record.prefix_hashes.empty()) ++info.counts.with_prefixes;
      return true;
    }
    if (info.counts.rows == 0) throw input_error(info.path, "rows behind the header", "none");
    return false;
  }

  /// Reads everything and orders it; rows that wait for others go last, where their parents are certainly
  /// before them.
  void sort_rows() {
    TraceRecord record;
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    while (next_row(record)) {
      if (record.after_id.empty()) {
        info.counts.out_of_order += record.arrival_ns < latest;
        latest = std::max(latest, record.arrival_ns);
      }
      sorted.push_back(record);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const TraceRecord& a, const TraceRecord& b) {
      if (a.after_id.empty() != b.after_id.empty()) return a.after_id.empty();
      return a.after_id.empty() && a.arrival_ns < b.arrival_ns;
    });
    is_sorted = true;
  }

  bool next_sorted(TraceRecord& record) {
    if (!is_sorted) sort_rows();
    if (sorted_at == sorted.size()) return false;
    record = std::move(sorted[sorted_at++]);
    return true;
  }

  /// The next row with time 0 where the format has it, in order.
  bool next_ordered(TraceRecord& record) {
    if (!(options.sort ? next_sorted(record) : next_row(record))) return false;
    if (!record.after_id.empty()) return true;
    if (origin_ns == kUnknown) origin_ns = facts(info.format).starts_at_first_row ? record.arrival_ns : 0;
    record.arrival_ns -= origin_ns;
    TraceCounts& counts = info.counts;
    if (counts.timed > 0 && record.arrival_ns < last_ns) {
      throw input_error(place(record.line),
                        "arrivals in order (at or after " + decimal_seconds(last_ns + origin_ns) + " s)",
                        decimal_seconds(record.arrival_ns + origin_ns) + " s; --sort sorts them");
    }
    if (counts.timed == 0 || record.arrival_ns != last_ns) ++counts.distinct_times;
    ++counts.timed;
    last_ns = record.arrival_ns;
    return true;
  }

  /// Collects the rows of one time and spreads them over the tick that begins there.
  void fill_ready() {
    if (!ahead && !(ahead = read_ahead())) return;
    const std::int64_t begin_ns = ahead->arrival_ns;
    std::vector<TraceRecord*> tied;
    do {
      ready.push_back(std::move(*ahead));
      if (ready.back().after_id.empty()) tied.push_back(&ready.back());
      ahead = read_ahead();
    } while (ahead && (!ahead->after_id.empty() || tied.empty() || ahead->arrival_ns == begin_ns));
    if (ahead && !tied.empty()) {
      const std::int64_t gap_ns = ahead->arrival_ns - begin_ns;
      tick_ns = tick_ns == kUnknown ? gap_ns : std::min(tick_ns, gap_ns);
    }
    if (tied.size() < 2 || tick_ns <= 0) return;
    std::vector<std::int64_t> offsets;
    for (const TraceRecord* record : tied) {
      const double share = kSpreadStream.uniform(static_cast<std::uint64_t>(record->line));
      offsets.push_back(static_cast<std::int64_t>(share * static_cast<double>(tick_ns)));
    }
    std::sort(offsets.begin(), offsets.end());
    for (std::size_t i = 0; i < tied.size(); ++i) tied[i]->arrival_ns += offsets[i];
  }

  std::optional<TraceRecord> read_ahead() {
    TraceRecord record;
    return next_ordered(record) ? std::optional<TraceRecord>(std::move(record)) : std::nullopt;
  }

  bool next(TraceRecord& record) {
    if (options.spread_ties == SpreadTies::none) return next_ordered(record);
    if (ready.empty()) fill_ready();
    if (ready.empty()) return false;
    record = std::move(ready.front());
    ready.pop_front();
    return true;
  }

  TraceLines lines;
  TraceReadOptions options;
  TraceInfo info;
  std::unique_ptr<RowParser> parser;
  std::string first_line;
  bool first_line_waits = false;
  std::int64_t origin_ns = kUnknown;
  std::int64_t last_ns = 0;
  std::vector<TraceRecord> sorted;
  std::size_t sorted_at = 0;
  bool is_sorted = false;
  std::deque<TraceRecord> ready;
  std::optional<TraceRecord> ahead;
  std::int64_t tick_ns = kUnknown;
};

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}

TraceReader::TraceReader(const std::string& path, const TraceReadOptions& options)
    : state_(std::make_unique<State>(TraceLines(path), path == "-" ? "standard input" : path, options)) {}

TraceReader TraceReader::from_text(std::string text, std::string name, const TraceReadOptions& options) {
  TraceLines lines(std::move(text), name);
  return TraceReader(std::make_unique<State>(std::move(lines), std::move(name), options));
}

TraceReader::~TraceReader() = default;
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;

bool TraceReader::next(TraceRecord& record) {
  if (!state_->next(record)) return false;
  ++state_->info.counts.kept;
  return true;
}

const TraceInfo& TraceReader::info() const { return state_->info; }

std::vector<WorkloadWarning> TraceReader::warnings() const {
  const TraceInfo& info = state_->info;
  const TraceCounts& counts = info.counts;
  std::vector<WorkloadWarning> found;
  if (!facts(info.format).has_prefixes || (counts.kept > 0 && counts.with_prefixes == 0)) {
    found.push_back(WorkloadWarning::no_prefix_data);
  }
  const bool quantised = counts.timed >= kQuantisedRowsMin && counts.distinct_times * 2 < counts.timed;
  if (info.spread_ties == SpreadTies::uniform) {
    found.push_back(WorkloadWarning::ties_spread);
  } else if (quantised) {
    found.push_back(WorkloadWarning::quantised_arrivals);
  }
  if (counts.out_of_order > 0) found.push_back(WorkloadWarning::sorted);
  if (counts.zero_output_dropped > 0) found.push_back(WorkloadWarning::zero_output_dropped);
  if (counts.hashes_cut > 0) found.push_back(WorkloadWarning::hashes_cut);
  return found;
}

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/workload/trace_reader.hpp"

namespace foretoken {

/// Turns the lines of one format into records. Token counts may be zero here; the reader has the rules for
/// that.
class RowParser {
 public:
  virtual ~RowParser() = default;
  /// Fills a cleared record from a line that is not blank; false when the line is a header.
  virtual bool parse(std::string_view line, std::int64_t number, TraceRecord& record) = 0;
};

/// Parsers by format. They note in `info`, which must outlive them, what they learn on the way; `info.path`
/// names the file in errors.
std::unique_ptr<RowParser> make_csv_parser(TraceFormat format, const std::vector<ColumnName>& columns,
                                           TraceInfo& info);
/// For mooncake and bailian.
std::unique_ptr<RowParser> make_hash_trace_parser(TraceFormat format, TraceInfo& info);
/// For our own JSONL.
std::unique_ptr<RowParser> make_canonical_parser(TraceInfo& info);

}  // namespace foretoken

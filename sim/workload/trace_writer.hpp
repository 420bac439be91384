#pragma once
#include <string>

#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "sim/workload/trace_record.hpp"

namespace foretoken {

/// Writes canonical JSONL: a header line, then one object a request; what equals its default is left out.
/// Reading the file back gives the same records.
class TraceWriter {
 public:
  /// `header` gets `foretoken_trace: 1` in front; a `block_tokens` in it stands for the rows' own.
  TraceWriter(std::string path, const Json& header);
  void write(const TraceRecord& record);
  /// Nothing is at the path before this; see AtomicFile.
  void commit();

 private:
  AtomicFile file_;
  std::int32_t block_tokens_ = 0;
  std::string line_;
};

/// One row as canonical JSON without a newline; `block_tokens` is left out where it equals the header's.
void append_canonical(std::string& out, const TraceRecord& record, std::int32_t header_block_tokens);
/// Nanoseconds as decimal seconds without trailing zeros.
std::string decimal_seconds(std::int64_t nanoseconds);

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include "sim/workload/workload.hpp"

namespace foretoken {

/// A trace to read, as all `trace` commands take it.
struct TraceInput {
  std::string path;
  TraceReadOptions read;
};

/// `trace inspect`: what a trace holds, and what to mind.
struct TraceInspectOptions {
  TraceInput input;
  bool json = false;
};

/// `trace convert`: any format to canonical JSONL. `source` and `license` go into the header where it has
/// none.
struct TraceConvertOptions {
  TraceInput input;
  std::string output;
  std::string source;
  std::string license;
};

/// `trace head`: the first `count` requests (0: all) of the window [from, to), moved to time 0.
struct TraceHeadOptions {
  TraceInput input;
  std::string output;
  std::int64_t count = 0;
  Duration from{};
  Duration to = kForever;
};

/// `trace scale`: the same requests at another rate; exactly one of the two is positive.
struct TraceScaleOptions {
  TraceInput input;
  std::string output;
  double rate_per_s = 0.0;
  double factor = 0.0;
};

/// `trace synth`: a canonical trace from a workload specification, which goes into the header. Needs a bound
/// in the specification
/// (`requests` or `duration`).
struct TraceSynthOptions {
  WorkloadSpec workload;
  std::string output;
  std::string source;
  std::string license;
};

/// Prints the report of `trace inspect` to `out` (one JSON document with `json`), warnings to `log` as well.
void trace_inspect(const TraceInspectOptions& options, std::ostream& out, std::ostream& log);
/// Each writes a canonical trace and says on `log` what it read and wrote. Output "-" is standard output;
/// writing onto the input is a UsageError.
void trace_convert(const TraceConvertOptions& options, std::ostream& log);
void trace_head(const TraceHeadOptions& options, std::ostream& log);
void trace_scale(const TraceScaleOptions& options, std::ostream& log);
void trace_synth(const TraceSynthOptions& options, std::ostream& log);

}  // namespace foretoken

#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/workload/trace_reader.hpp"
#include "sim/workload/trace_summary.hpp"
#include "sim/workload/trace_writer.hpp"

namespace foretoken {

/// Reads any bytes as a trace of one format, with each way to handle order and ties. What is read obeys the
/// reader's promises and survives being written and read again; everything else is an InputError.
inline void fuzz_trace(const std::uint8_t* data, std::size_t size, TraceFormat format) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool sort : {false, true}) {
    TraceReadOptions options;
    options.format = format;
    options.sort = sort;
    options.spread_ties = sort ? SpreadTies::uniform : SpreadTies::none;
    try {
      TraceReader reader = TraceReader::from_text(text, "fuzz", options);
      TraceSummary summary;
      TraceRecord record;
      std::int64_t last_ns = 0;
      while (reader.next(record)) {
        FT_CHECK(record.input_tokens >= 1 && record.output_tokens >= 0);
        if (record.after_id.empty()) {
          FT_CHECK(record.arrival_ns >= last_ns, record.arrival_ns, last_ns);
          last_ns = record.arrival_ns;
        }
        summary.add(record);
        std::string line;
        append_canonical(line, record, 0);
        // Nanoseconds survive a double of seconds for 46 days.
        if (record.arrival_ns > 4'000'000'000'000'000) continue;
        if (record.after_delay_ns > 4'000'000'000'000'000) continue;
        TraceReader again = TraceReader::from_text(line, "again");
        TraceRecord copy;
        FT_CHECK(again.next(copy), line);
        FT_CHECK(copy.arrival_ns == record.arrival_ns && copy.prefix_hashes == record.prefix_hashes, line);
      }
      static_cast<void>(summary.arrival_cv() + summary.dispersion() + summary.input().percentile(99));
    } catch (const InputError&) {
    }
  }
}

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/time.hpp"

namespace foretoken {

/// One row of a trace in our units. Arrivals are whole nanoseconds: every format here resolves 100 ns at
/// best, a double of seconds holds nanoseconds exactly for 46 days, and 64 bits of them span the 121-day logs
/// that engine time does not.
struct TraceRecord {
  /// Line of the file, from 1.
  std::int64_t line = 0;
  /// Since the trace's time 0 (see TraceFormatFacts); meaningless when `after_id` is set.
  std::int64_t arrival_ns = 0;
  /// Name of the request in its trace; may be empty.
  std::string id;
  /// The request arrives `after_delay_ns` after the end of the request of this name; empty for an open loop.
  std::string after_id;
  std::int64_t after_delay_ns = 0;
  std::int32_t input_tokens = 0;
  std::int32_t output_tokens = 0;
  /// Negative when the trace gives none.
  std::int32_t max_new_tokens = -1;
  std::int32_t priority = 0;
  std::string session;
  /// Position in the session, from 1; 0 when not given.
  std::int32_t turn = 0;
  /// Identity of the prompt's leading blocks of `block_tokens` each, the last one perhaps not full.
  std::vector<std::uint64_t> prefix_hashes;
  std::int32_t block_tokens = 0;
  std::string tenant;
  std::string slo_class;
  std::string source;
  std::string model;
  /// kForever when the trace gives none.
  Duration patience = kForever;
  Duration cancel_after = kForever;

  /// Back to the state of a fresh record, keeping the memory of its strings.
  void clear();
};

}  // namespace foretoken

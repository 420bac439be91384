#pragma once
#include "cli/command.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// `foretoken trace inspect | convert | head | scale | synth`.
CommandSpec trace_spec();

/// Flags that say how to read a trace, as text.
struct TraceFlags {
  std::string format = "detect";
  std::string columns;
  bool sort = false;
  std::string spread_ties = "none";
  std::string zero_output = "by-format";
};
/// The flags as options of a command.
void add_trace_flags(CommandSpec& command, TraceFlags& flags);
/// What the flags say. A UsageError for an unknown word.
TraceReadOptions trace_read_options(const TraceFlags& flags);

/// A duration from a flag with its unit, "90s"; a UsageError names the flag.
Duration parse_duration_flag(const std::string& text, std::string_view flag);

}  // namespace foretoken

#pragma once
#include "cli/command.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// `foretoken trace inspect | convert | head | scale | synth`.
CommandSpec trace_spec();

/// Flags that say how to read a trace, as text; empty where not given.
struct TraceFlags {
  std::string format;
  std::string columns;
  bool sort = false;
  std::string spread_ties;
  std::string zero_output;
};
/// The flags as options of a command.
void add_trace_flags(CommandSpec& command, TraceFlags& flags);
/// The first of them that was given; empty when none was.
std::string first_trace_flag(const TraceFlags& flags);
/// What the flags say. A UsageError for an unknown word, and for columns of a format that has its own.
TraceReadOptions trace_read_options(const TraceFlags& flags);

/// A duration from a flag with its unit, "90s"; a UsageError names the flag.
Duration parse_duration_flag(const std::string& text, std::string_view flag);

}  // namespace foretoken

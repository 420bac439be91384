#include "sim/workload/warning.hpp"

#include <array>

namespace foretoken {
namespace {

struct Row {
  std::string_view name;
  std::string_view advice;
};

constexpr std::array<Row, 12> kRows{{
    {"no_prefix_data", "the trace has no prefix information: results with a prefix cache mean nothing on it"},
    {"quantised_arrivals",
     "arrivals are quantised, so ttft mostly measures the tick: use --spread-ties uniform"},
    {"ties_spread",
     "requests of one arrival time were spread uniformly over the tick (--spread-ties uniform)"},
    {"sorted", "rows were out of order and have been sorted by arrival (--sort)"},
    {"zero_output_dropped",
     "rows without output tokens were dropped as failures; --zero-output keep offers them"},
    {"hashes_cut", "some rows had more prefix hashes than their prompt has blocks; the rest was cut"},
    {"over_long", "some requests exceed the longest sequence; they are counted, never clipped"},
    {"outputs_truncated", "some answers were cut to max_new_tokens; raise it if the trace's lengths matter"},
    {"turns_abandoned", "an earlier turn was cancelled or refused, so later turns of its session never came"},
    {"exact_max_new_tokens",
     "max_new_tokens is the true length: schedulers that reserve for it know the future"},
    {"duplicate_ids",
     "rows have an id that an earlier row has; a run refuses them where requests wait for others"},
    {"unknown_after", "rows wait for a request that no earlier row is; a run refuses them"},
}};

}  // namespace

std::string_view name(WorkloadWarning warning) { return kRows[static_cast<std::size_t>(warning)].name; }

std::string_view advice(WorkloadWarning warning) { return kRows[static_cast<std::size_t>(warning)].advice; }

}  // namespace foretoken

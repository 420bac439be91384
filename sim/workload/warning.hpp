#pragma once
#include <cstdint>
#include <string_view>

namespace foretoken {

/// What makes results on a workload doubtful, or was done to it.
enum class WorkloadWarning : std::uint8_t {
  no_prefix_data,
  quantised_arrivals,
  ties_spread,
  sorted,
  zero_output_dropped,
  hashes_cut,
  over_long,
  outputs_truncated,
  turns_abandoned,
  exact_max_new_tokens,
  duplicate_ids,
  unknown_after,
};

/// Its name in JSON documents.
std::string_view name(WorkloadWarning warning);
/// What it means and what to do about it, one line.
std::string_view advice(WorkloadWarning warning);

}  // namespace foretoken

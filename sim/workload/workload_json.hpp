#pragma once
#include <string>

#include "sim/base/json.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// Reads the `workload` object of a scenario. Durations are numbers with the unit in the key (`think_s`,
/// `patience_ms`) or text with a unit (`"think": "2 s"`). Unknown keys, missing ones and impossible values
/// are InputErrors at their JSON pointer.
WorkloadSpec read_workload(JsonReader& reader);
/// The resolved form, which reads back as the same specification; defaults included.
Json to_json(const WorkloadSpec& spec);
/// A file that holds such an object and perhaps `provenance` and `license`; paths in it are relative to its
/// folder.
WorkloadSpec read_workload_file(const std::string& path);
/// Makes relative trace paths relative to `folder`.
void resolve_paths(WorkloadSpec& spec, const std::string& folder);

}  // namespace foretoken

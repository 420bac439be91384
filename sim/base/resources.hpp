#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Content of a file that ships inside the program (everything under models/data, scenarios and
/// plots/assets), by its path from the repository root, such as "models/data/m25.json"; nothing when
/// there is no such file. Lives for ever.
std::optional<std::string_view> resource(std::string_view path);

/// Paths of the shipped files that begin with `prefix`, sorted.
std::vector<std::string> resource_paths(std::string_view prefix);

}  // namespace foretoken

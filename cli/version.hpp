#pragma once
#include <string>

namespace foretoken {

/// What `--version` prints: the version in one line, or all that is known of the build as JSON.
std::string version_text(bool json);

}  // namespace foretoken

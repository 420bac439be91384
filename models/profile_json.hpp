#pragma once
#include <string>

#include "models/profile.hpp"

namespace foretoken {

/// SHA-256 of everything in a profile but its hash, as its JSON text without blanks: it survives
/// reformatting, not edits.
[[nodiscard]] std::string content_hash(const Profile& profile);

}  // namespace foretoken

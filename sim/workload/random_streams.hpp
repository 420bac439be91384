#pragma once
#include <cstdint>

namespace foretoken::streams {

/// One stream per purpose, so that a new use of chance disturbs no old one. The values are part of what a
/// seed means.
inline constexpr std::uint64_t kGaps = 1;
inline constexpr std::uint64_t kPhases = 2;
inline constexpr std::uint64_t kClass = 3;
inline constexpr std::uint64_t kLengths = 4;
inline constexpr std::uint64_t kPrefix = 5;
inline constexpr std::uint64_t kPrediction = 6;
inline constexpr std::uint64_t kThink = 7;

}  // namespace foretoken::streams

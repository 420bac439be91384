#pragma once
#include <cstdint>
#include <limits>

namespace foretoken {

/// Bytes in a GiB, in the type that JSON numbers have.
inline constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

/// The largest 32-bit count, in the type that JSON numbers have.
inline constexpr double kInt32Max = std::numeric_limits<std::int32_t>::max();

}  // namespace foretoken

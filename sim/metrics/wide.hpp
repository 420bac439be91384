#pragma once
#include <cstdint>

namespace foretoken {

/// 128 bits, for sums of picoseconds times counts: exact where 64 bits would overflow within days.
__extension__ typedef __int128 Wide;

/// `a * b` without overflow.
constexpr Wide wide_product(std::int64_t a, std::int64_t b) { return static_cast<Wide>(a) * b; }
/// The nearest double.
constexpr double to_double(Wide value) { return static_cast<double>(value); }

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <string_view>

namespace foretoken {

/// How a number of tokens is drawn.
enum class LengthKind : std::uint8_t { fixed, uniform, log_normal };

/// A distribution of token counts. Fixed: `min`. Uniform: whole numbers in [min, max]. Log-normal: exp(mu +
/// sigma z) rounded to the nearest whole number, then clamped to [min, max]; moments are those before
/// clamping.
struct LengthSpec {
  LengthKind kind = LengthKind::fixed;
  std::int32_t min = 1;
  std::int32_t max = 1;
  double mu = 0.0;
  double sigma = 0.0;
};

/// Longest prompt or answer that any workload may ask for.
inline constexpr std::int32_t kTokensMax = 100'000'000;

/// Always `tokens`.
LengthSpec fixed_length(std::int32_t tokens);
/// Whole numbers in [min, max], all equally likely.
LengthSpec uniform_length(std::int32_t min, std::int32_t max);
/// Log-normal by its own mean and standard deviation, clamped to [min, max].
LengthSpec log_normal_by_sd(double mean, double sd, std::int32_t min = 1, std::int32_t max = kTokensMax);
/// Log-normal by mean and median; the mean must exceed the median (FT_CHECK).
LengthSpec log_normal_by_p50(double mean, double p50, std::int32_t min = 1, std::int32_t max = kTokensMax);
/// Log-normal by mean and 99th percentile; nothing has those two when p99 < mean or p99 > 14.9 mean (then
/// sigma is not a number and the caller refuses it).
LengthSpec log_normal_by_p99(double mean, double p99, std::int32_t min = 1, std::int32_t max = kTokensMax);
/// Mean before clamping and rounding.
double mean(const LengthSpec& spec);
/// The value for a uniform draw `u` in (0, 1) and a standard normal draw `z`; only one of them is used.
std::int32_t draw_length(const LengthSpec& spec, double u, double z);
/// A length from a flag: `120`, `uniform:8..512`, `log-normal:mean=120,p99=600,min=8,max=512` (also `sd`,
/// `p50`, or `mu` and `sigma`). A UsageError that names the flag for anything else.
LengthSpec parse_length(std::string_view text, std::string_view flag);

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <limits>
#include <optional>
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
/// Two facts about a log-normal distribution, the others not a number: mean and one of standard deviation,
/// median or 99th percentile; median and 99th percentile; or mu and sigma themselves.
struct LengthMoments {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double sd = std::numeric_limits<double>::quiet_NaN();
  double p50 = std::numeric_limits<double>::quiet_NaN();
  double p99 = std::numeric_limits<double>::quiet_NaN();
  double mu = std::numeric_limits<double>::quiet_NaN();
  double sigma = std::numeric_limits<double>::quiet_NaN();
};

/// Log-normal with those moments, clamped to [min, max]; nothing when other than two are given or no such
/// distribution exists (a mean below the median, a 99th percentile more than 14.9 times the mean).
std::optional<LengthSpec> log_normal(const LengthMoments& given, std::int32_t min = 1,
                                     std::int32_t max = kTokensMax);
/// Mean before clamping and rounding.
double mean(const LengthSpec& spec);
/// The value for a uniform draw `u` in (0, 1) and a standard normal draw `z`; only one of them is used.
std::int32_t draw_length(const LengthSpec& spec, double u, double z);
/// A length from a flag: `120`, `uniform:8..512`, `log-normal:mean=120,p99=600,min=8,max=512` (also `sd`,
/// `p50`, or `mu` and `sigma`). A UsageError that names the flag for anything else.
LengthSpec parse_length(std::string_view text, std::string_view flag);

}  // namespace foretoken

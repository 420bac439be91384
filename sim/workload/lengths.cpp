#include "sim/workload/lengths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

// The standard normal's 99th percentile.
constexpr double kZ99 = 2.3263478740408408;

[[noreturn]] void refuse(std::string_view flag, std::string_view text) {
  throw UsageError(
      std::string(flag) +
      ": expected a length such as 120, uniform:8..512 or log-normal:mean=120,p99=600,min=8,max=512 (sd, "
      "p50, or mu and sigma, too), found \"" +
      std::string(text) + "\"");
}

std::int32_t parse_tokens(std::string_view text, std::string_view flag) {
  const auto value = parse_int64(trim(text));
  if (!value || *value < 0 || *value > kTokensMax) refuse(flag, text);
  return static_cast<std::int32_t>(*value);
}

LengthSpec parse_log_normal(std::string_view text, std::string_view flag) {
  std::map<std::string, double> values;
  for (const std::string_view pair : split(text, ',')) {
    const std::size_t equals = pair.find('=');
    const auto value =
        equals == std::string_view::npos ? std::nullopt : parse_double(trim(pair.substr(equals + 1)));
    if (!value || !values.emplace(trim(pair.substr(0, equals)), *value).second) refuse(flag, pair);
  }
  const auto take = [&](const char* key, double fallback) {
    const auto found = values.find(key);
    if (found == values.end()) return fallback;
    const double value = found->second;
    values.erase(found);
    return value;
  };
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const double low = take("min", 1), high = take("max", kTokensMax);
  if (!(low >= 0 && low <= high && high <= kTokensMax)) refuse(flag, text);
  const LengthMoments moments{take("mean", none), take("sd", none), take("p50", none),
                              take("p99", none),  take("mu", none), take("sigma", none)};
  const auto spec = log_normal(moments, static_cast<std::int32_t>(low), static_cast<std::int32_t>(high));
  if (!values.empty() || !spec) refuse(flag, text);
  return *spec;
}

}  // namespace

LengthSpec fixed_length(std::int32_t tokens) { return {LengthKind::fixed, tokens, tokens, 0.0, 0.0}; }

LengthSpec uniform_length(std::int32_t min, std::int32_t max) {
  FT_CHECK(min <= max, min, max);
  return {LengthKind::uniform, min, max, 0.0, 0.0};
}

std::optional<LengthSpec> log_normal(const LengthMoments& given, std::int32_t min, std::int32_t max) {
  const auto has = [](double value) { return !std::isnan(value); };
  const int count =
      has(given.mean) + has(given.sd) + has(given.p50) + has(given.p99) + has(given.mu) + has(given.sigma);
  if (count != 2 || min > max) return std::nullopt;
  double mu = given.mu, sigma = given.sigma;
  if (has(given.mean) && has(given.sd)) {
    sigma = std::sqrt(std::log1p((given.sd / given.mean) * (given.sd / given.mean)));
    mu = std::log(given.mean) - sigma * sigma / 2;
  } else if (has(given.mean) && has(given.p50)) {
    mu = std::log(given.p50);
    sigma = std::sqrt(2 * std::log(given.mean / given.p50));
  } else if (has(given.mean) && has(given.p99)) {
    // p99 = exp(mu + z sigma) and mean = exp(mu + sigma^2 / 2); the smaller root is the one with the mean
    // below p99.
    sigma = kZ99 - std::sqrt(kZ99 * kZ99 - 2 * std::log(given.p99 / given.mean));
    mu = std::log(given.mean) - sigma * sigma / 2;
  } else if (has(given.p50) && has(given.p99)) {
    mu = std::log(given.p50);
    sigma = std::log(given.p99 / given.p50) / kZ99;
  }
  // Also refuses the other pairs, impossible moments, and values whose exponential is no number of tokens.
  if (!(sigma >= 0.0 && sigma <= 10.0 && mu >= -20.0 && mu <= 20.0)) return std::nullopt;
  return LengthSpec{LengthKind::log_normal, min, max, mu, sigma};
}

double mean(const LengthSpec& spec) {
  if (spec.kind == LengthKind::log_normal) return std::exp(spec.mu + spec.sigma * spec.sigma / 2);
  return (static_cast<double>(spec.min) + static_cast<double>(spec.max)) / 2;
}

std::int32_t draw_length(const LengthSpec& spec, double u, double z) {
  if (spec.kind == LengthKind::fixed) return spec.min;
  if (spec.kind == LengthKind::uniform) {
    const double span = static_cast<double>(spec.max) - static_cast<double>(spec.min) + 1.0;
    return spec.min + std::min(static_cast<std::int32_t>(u * span), spec.max - spec.min);
  }
  const double value = std::exp(spec.mu + spec.sigma * z) + 0.5;
  return static_cast<std::int32_t>(
      std::clamp(value, static_cast<double>(spec.min), static_cast<double>(spec.max)));
}

LengthSpec parse_length(std::string_view text, std::string_view flag) {
  constexpr std::string_view uniform = "uniform:", log_normal_name = "log-normal:";
  if (text.starts_with(log_normal_name)) return parse_log_normal(text.substr(log_normal_name.size()), flag);
  if (!text.starts_with(uniform)) return fixed_length(parse_tokens(text, flag));
  const std::string_view range = text.substr(uniform.size());
  const std::size_t dots = range.find("..");
  if (dots == std::string_view::npos) refuse(flag, text);
  const std::int32_t min = parse_tokens(range.substr(0, dots), flag);
  const std::int32_t max = parse_tokens(range.substr(dots + 2), flag);
  if (min > max) refuse(flag, text);
  return uniform_length(min, max);
}

}  // namespace foretoken

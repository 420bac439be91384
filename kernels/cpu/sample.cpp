#include "kernels/cpu/sample.hpp"

#include <algorithm>
#include <limits>

namespace foretoken::cpu {
namespace {

using namespace sampling;

/// The largest number of a row, or minus infinity. In several lanes, so that it is not bound by latency.
float largest_of(const float* logits, std::int32_t count) {
  constexpr int kLanes = 16;
  float most[kLanes];
  std::fill(most, most + kLanes, -std::numeric_limits<float>::infinity());
  std::int32_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int l = 0; l < kLanes; ++l) most[l] = logits[i + l] > most[l] ? logits[i + l] : most[l];
  for (; i < count; ++i) most[0] = logits[i] > most[0] ? logits[i] : most[0];
  return *std::max_element(most, most + kLanes);
}

std::int32_t first_of(const float* logits, std::int32_t count, float wanted) {
  const float* found = std::find(logits, logits + count, wanted);
  return found == logits + count ? 0 : static_cast<std::int32_t>(found - logits);
}

std::uint64_t mass_of_key(std::uint32_t key) { return mass_of(float_of(key | 0x80000000U)); }

/// The smallest key up to which the masses reach `target`. The keys are put into another order.
std::uint32_t key_at_mass(std::vector<std::uint32_t>& keys, std::uint64_t target) {
  auto begin = keys.begin(), end = keys.end();
  std::uint64_t before = 0;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    std::uint64_t lower = 0;
    for (auto at = begin; at != middle; ++at) lower += mass_of_key(*at);
    if (before + lower >= target) {
      end = middle;
    } else {
      before += lower;
      begin = middle;
    }
  }
  return *begin;
}

/// The largest key that may be drawn.
std::uint32_t limit_of(const float* logits, std::int32_t vocabulary, const SampleParams& params, float largest,
                       float inverse, SampleScratch& scratch) {
  std::uint32_t limit = min_p_limit(params.min_p);
  const bool has_top_p = params.top_p < 1.0F;
  if (params.top_k <= 0 && !has_top_p) return limit;
  auto& keys = scratch.keys;
  keys.clear();
  for (std::int32_t i = 0; i < vocabulary; ++i) {
    const std::uint32_t key = key_of(scaled(logits[i], largest, inverse));
    if (key <= limit) keys.push_back(key);
  }
  const auto kept = static_cast<std::size_t>(std::max(params.top_k, 0));
  if (kept > 0 && kept < keys.size()) {
    const auto last = keys.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
    std::nth_element(keys.begin(), last, keys.end());
    limit = *last;
    keys.erase(std::partition(keys.begin(), keys.end(), [&](std::uint32_t key) { return key <= limit; }),
               keys.end());
  }
  if (!has_top_p) return limit;
  std::uint64_t total = 0;
  for (const std::uint32_t key : keys) total += mass_of_key(key);
  return std::min(limit, key_at_mass(keys, top_p_target(params.top_p, total)));
}

}  // namespace

std::int32_t sample_row(const float* logits, std::int32_t vocabulary, const SampleParams& params,
                        SampleScratch& scratch) {
  const float largest = largest_of(logits, vocabulary);
  if (is_greedy(params, largest)) return first_of(logits, vocabulary, largest);
  const float inverse = divide(1.0F, params.temperature);
  const std::uint32_t limit = limit_of(logits, vocabulary, params, largest, inverse, scratch);
  const std::uint64_t key = draw_key(params);
  float best = -std::numeric_limits<float>::infinity();
  std::int32_t token = 0;
  for (std::int32_t i = 0; i < vocabulary; ++i) {
    const float z = scaled(logits[i], largest, inverse);
    // Most tokens could not win with any noise; the noise is what costs.
    if (key_of(z) > limit || !(z >= best - kNoiseMax)) continue;
    const float s = score(z, key, static_cast<std::uint32_t>(i));
    if (s > best) {
      best = s;
      token = i;
    }
  }
  return token;
}

}  // namespace foretoken::cpu

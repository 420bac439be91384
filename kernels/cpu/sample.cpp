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

/// Keys are told apart in two steps, first by these upper bits: eight steps for each power of two.
constexpr int kBucketShift = 20;
constexpr std::size_t kBuckets = (kKeyMax >> kBucketShift) + 1;

/// The limit that top_k most probable of the row leave, at most `limit`.
std::uint32_t top_k_limit(std::vector<std::uint32_t>& keys, std::int32_t top_k, std::uint32_t limit) {
  const auto kept = static_cast<std::size_t>(top_k);
  if (kept >= keys.size()) return limit;
  const auto last = keys.begin() + static_cast<std::ptrdiff_t>(kept) - 1;
  std::nth_element(keys.begin(), last, keys.end());
  return *last;
}

/// The limit that top_p leaves of the keys up to `limit`.
std::uint32_t top_p_limit(SampleScratch& scratch, float top_p, std::uint32_t limit) {
  auto& keys = scratch.keys;
  auto& masses = scratch.masses;
  masses.assign(kBuckets, 0);
  std::uint64_t total = 0;
  for (const std::uint32_t key : keys) {
    const std::uint64_t mass = key <= limit ? mass_of_key(key) : 0;
    masses[key >> kBucketShift] += mass;
    total += mass;
  }
  std::uint64_t target = top_p_target(top_p, total);
  std::uint32_t bucket = 0;
  for (; bucket + 1 < kBuckets && masses[bucket] < target; ++bucket) target -= masses[bucket];
  const auto is_elsewhere = [&](std::uint32_t key) { return key >> kBucketShift != bucket || key > limit; };
  keys.erase(std::remove_if(keys.begin(), keys.end(), is_elsewhere), keys.end());
  return std::min(limit, key_at_mass(keys, target));
}

/// The largest key that may be drawn.
std::uint32_t limit_of(const float* logits, std::int32_t vocabulary, const SampleParams& params,
                       float largest, float inverse, SampleScratch& scratch) {
  std::uint32_t limit = min_p_limit(params.min_p);
  const bool has_top_p = params.top_p < 1.0F;
  if (params.top_k <= 0 && !has_top_p) return limit;
  auto& keys = scratch.keys;
  keys.clear();
  for (std::int32_t i = 0; i < vocabulary; ++i) {
    const std::uint32_t key = key_of(scaled(logits[i], largest, inverse));
    if (key <= limit) keys.push_back(key);
  }
  if (params.top_k > 0) limit = top_k_limit(keys, params.top_k, limit);
  return has_top_p ? top_p_limit(scratch, params.top_p, limit) : limit;
}

/// Logits looked at together: those of a few are all below what could win more often than not.
constexpr std::int32_t kTogether = 64;

/// The draw among the tokens up to `limit`.
class Draw {
 public:
  Draw(const SampleParams& params, float largest, float inverse, std::uint32_t limit, std::int32_t favourite)
      : key_(draw_key(params)), largest_(largest), inverse_(inverse), limit_(limit), token_(favourite) {
    // The most probable token is always in, and a score to beat from the start.
    best_ = score(0.0F, uniform(key_, static_cast<std::uint32_t>(favourite)));
  }

  /// Looks at the `count` logits from `first` on.
  void look(const float* logits, std::int32_t first, std::int32_t count) {
    float z[kTogether];
    std::uint32_t random[kTogether], may[kTogether], any = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      z[i] = scaled(logits[first + i], largest_, inverse_);
      may[i] = static_cast<std::uint32_t>(key_of(z[i]) <= limit_) &
               static_cast<std::uint32_t>(z[i] >= best_ - kNoiseMax);
      any |= may[i];
    }
    if (any == 0) return;
    any = 0;
    for (std::int32_t i = 0; i < count; ++i) {
      random[i] = uniform(key_, static_cast<std::uint32_t>(first + i));
      may[i] &= static_cast<std::uint32_t>(may_reach(z[i], random[i], best_));
      any |= may[i];
    }
    for (std::int32_t i = 0; any != 0 && i < count; ++i) {
      if (may[i] == 0) continue;
      const float s = score(z[i], random[i]);
      if (s > best_ || (s == best_ && first + i < token_)) {
        best_ = s;
        token_ = first + i;
      }
    }
  }

  std::int32_t token() const { return token_; }

 private:
  std::uint64_t key_;
  float largest_;
  float inverse_;
  std::uint32_t limit_;
  std::int32_t token_;
  float best_;
};

}  // namespace

std::int32_t sample_row(const float* logits, std::int32_t vocabulary, const SampleParams& params,
                        SampleScratch& scratch) {
  const float largest = largest_of(logits, vocabulary);
  const std::int32_t favourite = first_of(logits, vocabulary, largest);
  if (is_greedy(params, largest)) return favourite;
  const float inverse = divide(1.0F, params.temperature);
  const std::uint32_t limit = limit_of(logits, vocabulary, params, largest, inverse, scratch);
  Draw draw(params, largest, inverse, limit, favourite);
  std::int32_t i = 0;
  for (; i + kTogether <= vocabulary; i += kTogether) draw.look(logits, i, kTogether);
  if (i < vocabulary) draw.look(logits, i, vocabulary - i);
  return draw.token();
}

}  // namespace foretoken::cpu

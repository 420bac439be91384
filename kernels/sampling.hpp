#pragma once
#include <cstdint>
#if !defined(__CUDACC__)
#include <bit>
#endif

#include "kernels/host_device.hpp"

/// How a token is drawn from logits, written so that every processor draws the same one from the same logits:
/// the generator and all masses are whole numbers, and every rounding of a float is IEEE's, one operation at
/// a time. Files that include this are to be compiled with -ffp-contract=off.
namespace foretoken::sampling {

/// How one row is to be drawn. The draw depends on seed, request and position alone, not on the row's place
/// in a batch.
struct SampleParams {
  /// 0 takes the first index of the largest logit; else logits are divided by it.
  float temperature = 0.0F;
  /// Tokens below this part of the most probable one's probability are out; 0 keeps all.
  float min_p = 0.0F;
  /// Then the fewest most probable tokens stay whose mass is at least this part of what is left; 1 keeps all.
  float top_p = 1.0F;
  /// Before top_p: only this many most probable tokens stay, and those as probable as the last of them; 0
  /// keeps all.
  std::int32_t top_k = 0;
  std::uint64_t seed = 0;
  std::uint64_t request = 0;
  std::uint64_t position = 0;
};

/// Float and bit operations that are never fused or approximated.
FT_HOST_DEVICE inline float multiply(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
FT_HOST_DEVICE inline float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
FT_HOST_DEVICE inline float divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
FT_HOST_DEVICE inline std::uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#elif defined(__CUDACC__)
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
#else
  return std::bit_cast<std::uint32_t>(x);
#endif
}
FT_HOST_DEVICE inline float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#elif defined(__CUDACC__)
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
#else
  return std::bit_cast<float>(bits);
#endif
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
FT_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The stream of random numbers of one draw.
FT_HOST_DEVICE constexpr std::uint64_t draw_key(const SampleParams& params) {
  return mix(mix(mix(params.seed + 0x9e3779b97f4a7c15U) + params.request) + params.position);
}

/// Number `index` of the stream, uniform in (0, 1), in units of 2^-24.
FT_HOST_DEVICE constexpr std::uint32_t uniform(std::uint64_t key, std::uint32_t index) {
  const auto whole = static_cast<std::uint32_t>(mix(key + index * 0x9e3779b97f4a7c15U) >> 40);
  return whole == 0 ? 1U : whole;
}

/// No score is further above its z: of the largest random number, log(1 - 2^-24) is -2^-24 or nearly.
inline constexpr float kNoiseMax = 16.7F;

/// log(x) of a positive normal number, within 2 units of the last place (after Cephes' logf).
FT_HOST_DEVICE inline float log_exact(float x) {
  const std::uint32_t bits = bits_of(x);
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t shifted = bits - 0x3f3504f3U;
  const auto e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = float_of((shifted & 0x7fffffU) + 0x3f3504f3U), f = add(m, -1.0F), square = multiply(f, f);
  float p = 7.0376836292e-2F;
  p = add(multiply(p, f), -1.1514610310e-1F);
  p = add(multiply(p, f), 1.1676998740e-1F);
  p = add(multiply(p, f), -1.2420140846e-1F);
  p = add(multiply(p, f), 1.4249322787e-1F);
  p = add(multiply(p, f), -1.6668057665e-1F);
  p = add(multiply(p, f), 2.0000714765e-1F);
  p = add(multiply(p, f), -2.4999993993e-1F);
  p = add(multiply(p, f), 3.3333331174e-1F);
  float y = multiply(multiply(f, square), p);
  y = add(y, multiply(e, -2.12194440e-4F));
  y = add(y, multiply(-0.5F, square));
  return add(add(f, y), multiply(e, 0.693359375F));
}

/// Bits after the point of a token's mass.
inline constexpr int kMassBits = 40;

/// exp(z) 2^40 as a whole number, for z <= 0: sums of these do not depend on their order, and fit 64 bits for
/// 2^24 tokens.
FT_HOST_DEVICE inline std::uint64_t mass_of(float z) {
  if (!(z > -28.0F)) return 0;
  const float t = add(multiply(z, 1.44269504088896341F), -0.5F);
  // The nearest whole number, since t is negative.
  const auto n = static_cast<std::int32_t>(t);
  const auto whole = static_cast<float>(n);
  float r = add(z, multiply(whole, -0.693359375F));
  r = add(r, multiply(whole, 2.12194440e-4F));
  float p = 1.9875691500e-4F;
  p = add(multiply(p, r), 1.3981999507e-3F);
  p = add(multiply(p, r), 8.3334519073e-3F);
  p = add(multiply(p, r), 4.1665795894e-2F);
  p = add(multiply(p, r), 1.6666665459e-1F);
  p = add(multiply(p, r), 5.0000001201e-1F);
  p = add(add(multiply(multiply(p, r), r), r), 1.0F);
  // p lies in (1/2, 2): its exponent is moved, which rounds nothing, and what is below a whole number is cut
  // off.
  return static_cast<std::uint64_t>(float_of(bits_of(p) + (static_cast<std::uint32_t>(n + kMassBits) << 23)));
}

/// A logit below the largest one, over the temperature: at most 0, and NaN for what is no number.
FT_HOST_DEVICE inline float scaled(float logit, float largest, float inverse_temperature) {
  return multiply(add(logit, -largest), inverse_temperature);
}

/// Orders scaled logits: the smaller the key the more probable. Keys of NaN lie above kKeyMax.
FT_HOST_DEVICE inline std::uint32_t key_of(float z) { return bits_of(z) & 0x7fffffffU; }
/// The key of minus infinity.
inline constexpr std::uint32_t kKeyMax = 0x7f800000U;

/// The largest key that min_p leaves in.
FT_HOST_DEVICE inline std::uint32_t min_p_limit(float min_p) {
  if (!(min_p > 1e-30F)) return kKeyMax;
  return min_p >= 1.0F ? 0U : key_of(log_exact(min_p));
}

/// The least mass that top_p asks of `total`.
FT_HOST_DEVICE inline std::uint64_t top_p_target(float top_p, std::uint64_t total) {
  if (!(top_p < 1.0F)) return total;
  const auto part = static_cast<std::uint64_t>(multiply(top_p > 0.0F ? top_p : 0.0F, 16777216.0F));
  const std::uint64_t target = (total >> 24) * part + ((total & 0xffffffU) * part >> 24);
  return target > 0 ? target : 1;
}

/// What Gumbel's trick compares (Gumbel, 1954; Maddison, Tarlow and Minka, 2014): the token with the largest
/// score is a draw from the softmax of z. `random` is the token's number of the stream.
FT_HOST_DEVICE inline float score(float z, std::uint32_t random) {
  const float u = multiply(static_cast<float>(random), 5.9604644775390625e-8F);
  return add(z, -log_exact(-log_exact(u)));
}

/// Whether the score may reach `best`; most tokens' cannot, and logarithms are what a draw costs. With u the
/// random number, it can only where 1 - u <= -log(u) <= exp(z - best), and the next power of two is above the
/// right side even when every rounding is against us. Without a branch, so that compilers make vectors of it.
FT_HOST_DEVICE inline bool may_reach(float z, std::uint32_t random, float best) {
  float power = add(multiply(add(z, -best), 1.44F), 0.01F);
  power = power > -60.0F ? power : -60.0F;
  power = power < 60.0F ? power : 60.0F;
  const std::int32_t exponent = 127 + 24 + static_cast<std::int32_t>(power);
  return static_cast<float>(static_cast<std::int32_t>(16777216U - random)) <=
         float_of(static_cast<std::uint32_t>(exponent) << 23);
}

/// Whether a row is only asked for its largest logit; an infinite one leaves nothing to draw either.
FT_HOST_DEVICE inline bool is_greedy(const SampleParams& params, float largest) {
  return !(params.temperature > 0.0F) || !(largest < float_of(kKeyMax)) || largest == -float_of(kKeyMax);
}

}  // namespace foretoken::sampling

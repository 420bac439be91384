#pragma once
#include <cmath>
#include <cstdint>

namespace foretoken {

/// The SplitMix64 finaliser (Steele, Lea, Flood 2014): a bijection on 64 bits whose output bits all depend on
/// all input bits.
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A stream of random numbers without hidden state: draw `i` is a pure function of (seed, stream, i).
/// Arrivals can therefore be made lazily, two policies see the same workload, and a new stream disturbs no
/// old one.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream) : key_(mix(seed ^ mix(stream))) {}
  /// 64 random bits.
  constexpr std::uint64_t bits(std::uint64_t i) const { return mix(key_ + mix(i)); }
  /// Uniform in the open interval (0, 1), so that its logarithm is finite.
  constexpr double uniform(std::uint64_t i) const {
    return (static_cast<double>(bits(i) >> 11) + 0.5) * 0x1p-53;
  }
  /// Uniform integer in [low, high]; the bias of the multiplication method is below 2^-32 for spans under
  /// 2^32.
  constexpr std::int64_t integer(std::uint64_t i, std::int64_t low, std::int64_t high) const {
    const auto span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(((bits(i) >> 32) * span) >> 32);
  }
  /// Exponential with mean 1 (inverse transform).
  double exponential(std::uint64_t i) const { return -std::log(uniform(i)); }
  /// Standard normal (Box and Muller 1958), from draws 2i and 2i + 1.
  double normal(std::uint64_t i) const {
    constexpr double two_pi = 6.283185307179586;
    return std::sqrt(-2.0 * std::log(uniform(2 * i))) * std::cos(two_pi * uniform(2 * i + 1));
  }
  /// Gamma with the given shape and mean 1 (Marsaglia and Tsang 2000); draw `i` owns a stream of its own for
  /// the rejections.
  double gamma(std::uint64_t i, double shape) const;

 private:
  std::uint64_t key_;
};

inline double RandomStream::gamma(std::uint64_t i, double shape) const {
  const RandomStream own(key_, i);
  const double boosted = shape < 1.0 ? shape + 1.0 : shape;
  const double d = boosted - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  double value = 0.0;
  for (std::uint64_t tries = 0;; ++tries) {
    const double x = own.normal(2 * tries);
    const double v = 1.0 + c * x;
    if (v <= 0.0) continue;
    const double cube = v * v * v;
    if (std::log(own.uniform(4 * tries + 2)) < 0.5 * x * x + d - d * cube + d * std::log(cube)) {
      value = d * cube;
      break;
    }
  }
  // A shape below one is boosted by one and scaled back with u^(1/shape).
  if (shape < 1.0) value *= std::pow(RandomStream(key_, mix(i) ^ 1).uniform(0), 1.0 / shape);
  return value / shape;
}

}  // namespace foretoken

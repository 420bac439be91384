#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/cost.hpp"
#include "models/profile.hpp"
#include "sim/core/random.hpp"

namespace foretoken::test {

/// Where the shipped shapes and devices lie.
inline const std::string kDataFolder = std::string(FORETOKEN_SOURCE_DIR) + "/models/data";

/// A machine that the fit does not know: products in stairs of six rows above a streaming floor, an LM
/// head, attention whose speed depends on how rows divide over two threads, KV that leaves a cache, ragged
/// rows, and chunks that overlap with decodes.
struct HiddenMachine {
  double noise = 0.01;          ///< Standard deviation of a timing, relative.
  double outlier_share = 0.01;  ///< Share of timings that take three times as long.
  /// Noiseless duration.
  [[nodiscard]] double true_ps(const StepFeatures& features) const;
  /// One timing with noise; `draw` picks it.
  [[nodiscard]] std::int64_t timed_ps(const StepFeatures& features, const RandomStream& random,
                                      std::uint64_t draw) const;
};

/// A decode step of equal contexts.
[[nodiscard]] StepShape decodes(std::int32_t count, std::int32_t context);
/// A decode step of contexts spread evenly over [low, high].
[[nodiscard]] StepShape ragged(std::int32_t count, std::int32_t low, std::int32_t high);
/// One chunk, its last token sampled or not.
[[nodiscard]] StepShape prefill(std::int32_t tokens, std::int32_t context, bool sampled);
/// Chunks and decodes together.
[[nodiscard]] StepShape mixed(std::int32_t tokens, std::int32_t context, StepShape rows);
/// A sweep as calibration runs it.
[[nodiscard]] std::vector<StepShape> sweep();
/// `repeats` timings of each shape.
[[nodiscard]] std::vector<Sample> timings(const HiddenMachine& machine, const std::vector<StepShape>& shapes,
                                          std::int32_t repeats, std::uint64_t seed);
/// A machine and mode to write into profiles: the shipped m25 on a CPU.
[[nodiscard]] ProfileOrigin origin();
/// A step drawn at random: any mixture within the sizes that a test wants.
[[nodiscard]] StepShape drawn_step(const RandomStream& random, std::uint64_t draw, bool pure_decode);

}  // namespace foretoken::test

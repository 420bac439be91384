#include "tests/models/synthetic.hpp"

#include <algorithm>
#include <cmath>

namespace foretoken::test {

double HiddenMachine::true_ps(const StepFeatures& features) const {
  const auto tokens = static_cast<double>(computed_tokens(features));
  const double products = std::max(700e6, 38e6 * 6 * std::ceil(tokens / 6));
  const double head = features.sampled_rows > 0 ? std::max(70e6, 4.1e6 * features.sampled_rows) : 0.0;
  double attention = 0;
  if (features.decode_count > 0) {
    const double waves = std::ceil(features.decode_count / 2.0) * 2 / features.decode_count;
    const auto sum = static_cast<double>(features.decode_context_sum);
    const double slope = sum * 4096 > 8e6 ? 95e3 : 70e3;
    const double spread = features.decode_count * double{1.0 * features.decode_context_max} - sum;
    attention += waves * (sum * slope + 9e6 * features.decode_count) + 4e3 * spread;
  }
  for (const ChunkFeatures& chunk : features.chunks)
    attention +=
        25e6 + 30e3 * chunk.context + 220.0 * 1e3 * chunk.tokens * (chunk.context + (chunk.tokens + 1) / 2.0);
  double overlap = 0;
  if (!features.chunks.empty() && features.decode_count > 0) overlap = 60e6 + 1.5e6 * features.decode_count;
  return 90e6 + products + head + attention - overlap;
}

std::int64_t HiddenMachine::timed_ps(const StepFeatures& features, const RandomStream& random,
                                     std::uint64_t draw) const {
  const double factor = 1 + noise * random.normal(2 * draw);
  const bool is_outlier = random.uniform(4 * draw + 3) < outlier_share;
  return std::llround(true_ps(features) * std::max(0.5, factor) * (is_outlier ? 3 : 1));
}

StepShape decodes(std::int32_t count, std::int32_t context) { return ragged(count, context, context); }

StepShape ragged(std::int32_t count, std::int32_t low, std::int32_t high) {
  StepShape shape;
  shape.decode_count = shape.sampled_rows = count;
  for (std::int32_t i = 0; i < count; ++i)
    shape.decode_context_sum += low + std::int64_t{high - low} * i / std::max(1, count - 1);
  shape.decode_context_min = low;
  shape.decode_context_max = count == 1 ? low : high;
  return shape;
}

StepShape prefill(std::int32_t tokens, std::int32_t context, bool sampled) {
  StepShape shape;
  shape.chunks = {{tokens, context}};
  shape.sampled_rows = sampled ? 1 : 0;
  return shape;
}

StepShape mixed(std::int32_t tokens, std::int32_t context, StepShape rows) {
  rows.chunks = {{tokens, context}};
  ++rows.sampled_rows;
  return rows;
}

std::vector<StepShape> sweep() {
  std::vector<StepShape> shapes;
  for (const std::int32_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 21, 24, 29, 32, 41, 48, 55, 64})
    for (const std::int32_t context : {16, 128, 512, 1024, 2048}) shapes.push_back(decodes(count, context));
  for (const std::int32_t tokens :
       {1, 2, 4, 6, 8, 12, 16, 18, 24, 30, 32, 48, 64, 96, 128, 160, 192, 256, 320, 384, 448, 512})
    for (const std::int32_t context : {0, 512, 1536})
      shapes.push_back(prefill(tokens, context, (tokens + context / 512) % 4 != 0));
  for (const std::int32_t count : {2, 4, 8, 16, 32})
    for (const std::int32_t tokens : {32, 128, 224, 448})
      for (const std::int32_t context : {128, 1024})
        shapes.push_back(mixed(tokens, context / 2, decodes(count, context)));
  for (const std::int32_t count : {3, 4, 8, 13, 16, 25, 32, 47})
    for (const std::int32_t high : {256, 768, 1536}) shapes.push_back(ragged(count, 32, high));
  return shapes;
}

std::vector<Sample> timings(const HiddenMachine& machine, const std::vector<StepShape>& shapes,
                            std::int32_t repeats, std::uint64_t seed) {
  const RandomStream random(seed, 1);
  std::vector<Sample> samples;
  std::uint64_t draw = 0;
  for (std::int32_t repeat = 0; repeat < repeats; ++repeat)
    for (const StepShape& shape : shapes) {
      const StepFeatures features = shape.features();
      samples.push_back({shape, regime_of(features), repeat, machine.timed_ps(features, random, draw++)});
    }
  return samples;
}

ProfileOrigin origin() {
  ProfileOrigin origin;
  origin.device = "a test machine";
  origin.driver = "avx512-bf16";
  origin.clocks = "fixed";
  origin.kernel_build = "test";
  origin.date = "2026-01-01";
  origin.threads = 2;
  origin.depth = 1;
  origin.shape = find_shape("m25", kDataFolder);
  return origin;
}

StepShape drawn_step(const RandomStream& random, std::uint64_t draw, bool pure_decode) {
  const auto pick = [&](std::uint64_t i, std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(random.integer(16 * draw + i, low, high));
  };
  StepShape shape;
  if (pure_decode || pick(0, 0, 3) > 0) {
    const std::int32_t low = pick(2, 0, 3000);
    shape = ragged(pick(1, 1, 90), low, low + (pick(3, 0, 1) ? pick(4, 0, 2000) : 0));
  }
  if (!pure_decode)
    for (std::int32_t i = pick(5, shape.decode_count ? 0 : 1, 3); i > 0; --i) {
      shape.chunks.push_back({pick(6 + static_cast<std::uint64_t>(i), 1, 700), pick(10, 0, 4000)});
      ++shape.sampled_rows;
    }
  if (pick(11, 0, 3) == 0) shape.padded_rows = pick(12, 1, 8);
  if (!pure_decode && pick(13, 0, 3) == 0) shape.padded_tokens = pick(14, 1, 300);
  shape.sampled_rows += shape.padded_rows;
  return shape;
}

}  // namespace foretoken::test

#include <cmath>

#include "backend/tensors.hpp"
#include "sim/core/random.hpp"

namespace foretoken {
namespace {

/// FNV-1a: turns a name into a stream number.
std::uint64_t name_stream(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

class RandomTensors final : public TensorSource {
 public:
  RandomTensors(std::uint64_t seed, Runtime<Cpu>& runtime) : seed_(seed), runtime_(runtime) {}

  TensorView tensor(const TensorSpec& spec) override {
    const auto elements = static_cast<std::size_t>(spec.elements());
    if (values_.size() < elements) values_.resize(elements);
    const RandomStream stream(seed_, name_stream(spec.name));
    // One draw of 64 bits gives four numbers of 16: 65536 levels are finer than bf16, and loading is four
    // times as fast.
    const float step = spec.spread * std::sqrt(3.0F) / 32768.0F;
    const auto fill = [&](const cpu::Team& team) {
      const auto draws = static_cast<std::int64_t>((elements + 3) / 4);
      const cpu::Range part = cpu::split(draws, team.share);
      for (std::int64_t i = part.begin; i < part.end; ++i) {
        const std::uint64_t bits = stream.bits(static_cast<std::uint64_t>(i));
        for (std::size_t j = 0; j < 4 && static_cast<std::size_t>(i) * 4 + j < elements; ++j) {
          const auto level = static_cast<float>((bits >> (16 * j)) & 0xffffU);
          values_[static_cast<std::size_t>(i) * 4 + j] = spec.mean + step * (level - 32767.5F);
        }
      }
    };
    runtime_.run(fill);
    return {values_.data(), ElementType::f32};
  }

 private:
  std::uint64_t seed_;
  Runtime<Cpu>& runtime_;
  std::vector<float> values_;
};

}  // namespace

std::unique_ptr<TensorSource> random_tensors(std::uint64_t seed, Runtime<Cpu>& runtime) {
  return std::make_unique<RandomTensors>(seed, runtime);
}

}  // namespace foretoken

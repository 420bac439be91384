#pragma once
#include <cstdint>
#include <vector>

#include "kernels/sampling.hpp"

namespace foretoken::cpu {

/// Memory that sample_row uses; keeps its capacity, so that sampling allocates nothing once warm.
struct SampleScratch {
  std::vector<std::uint32_t> keys;
  std::vector<std::uint64_t> masses;
};

/// The token drawn from `vocabulary` logits as kernels/sampling.hpp says. NaN is never drawn; a row without
/// numbers gives 0.
std::int32_t sample_row(const float* logits, std::int32_t vocabulary, const sampling::SampleParams& params,
                        SampleScratch& scratch);

}  // namespace foretoken::cpu

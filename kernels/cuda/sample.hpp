#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"
#include "kernels/sampling.hpp"

namespace foretoken::cuda {

/// tokens[r] = the token drawn from row r of the logits as kernels/sampling.hpp says: bit for bit the CPU's.
struct SampleArgs {
  int rows = 0;
  int vocabulary = 0;
  /// f32 [rows][vocabulary].
  const float* logits = nullptr;
  std::int64_t stride = 0;
  /// [rows], or null to take the first index of the largest logit everywhere.
  const sampling::SampleParams* params = nullptr;
  std::int32_t* tokens = nullptr;
};

/// Runs on `stream`, one block per row. Nothing is sorted: thresholds are found by narrowing, with exact
/// counts.
void sample(const SampleArgs& args, Stream stream);

}  // namespace foretoken::cuda

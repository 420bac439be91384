#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// residual += delta; out = residual / sqrt(mean(residual^2) + epsilon) * weight, row by row (Zhang and Sennrich, 2019).
struct RmsNormArgs {
  int rows = 0;
  int dim = 0;
  float* residual = nullptr;
  std::int64_t residual_stride = 0;
  /// What the last product added, of type `activation`, or null.
  const void* delta = nullptr;
  std::int64_t delta_stride = 0;
  /// [dim] f32.
  const float* weight = nullptr;
  float epsilon = 1e-5F;
  void* out = nullptr;
  std::int64_t out_stride = 0;
  ElementType activation = ElementType::bf16;
  /// Rows of residual and delta to read, [rows], or null for all in order. With it the residual is not written: what is
  /// left to do is the last rows before the LM head.
  const std::int32_t* row_index = nullptr;
};

/// Runs on `stream`. A row's bits depend on its own numbers and on `dim` alone.
void rms_norm(const RmsNormArgs& args, Stream stream);

}  // namespace foretoken::cuda

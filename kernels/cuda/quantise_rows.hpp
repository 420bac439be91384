#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda {

/// Weights [rows, depth] to one byte each: scale = absmax of the row / 127, q = round(w / scale) to the
/// nearest, ties to even. A row of zeros has scale 0, and so has one whose scale would be no normal number's.
struct QuantiseRowsArgs {
  int rows = 0;
  int depth = 0;
  /// [rows, depth] without gaps.
  const void* weights = nullptr;
  ElementType type = ElementType::bf16;
  /// [rows, depth].
  std::int8_t* quantised = nullptr;
  /// [rows].
  float* scales = nullptr;
};

/// Whether `quantise_rows` takes weights of this shape.
constexpr bool quantise_rows_supports(int rows, int depth) { return rows >= 0 && depth >= 1; }

/// Computes `quantised` and `scales`. Deterministic to the bit on any device.
void quantise_rows(const QuantiseRowsArgs& args, Stream stream);

}  // namespace foretoken::cuda

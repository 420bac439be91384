#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// out[r] = table[tokens[r]], f32. Negative tokens (dead rows) give zeros.
struct EmbedArgs {
  int rows = 0;
  int dim = 0;
  const std::int32_t* tokens = nullptr;
  /// [vocabulary][dim], row-major.
  const void* table = nullptr;
  ElementType table_type = ElementType::bf16;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

/// Runs on `stream`. Nothing to do for no rows.
void embed(const EmbedArgs& args, Stream stream);

}  // namespace foretoken::cuda

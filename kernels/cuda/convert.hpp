#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// target[i] = source[i] rounded to the nearest bf16, ties to even, for `count` elements, on `stream`.
void convert_to_bf16(const float* source, Bf16* target, std::int64_t count, Stream stream);

/// Sets `words` 32-bit words at `target` to `pattern`, on `stream`: 0 for zeros, 0x7fc07fc0 for NaN in f32 and bf16.
void fill_words(void* target, std::uint32_t pattern, std::int64_t words, Stream stream);

}  // namespace foretoken::cuda

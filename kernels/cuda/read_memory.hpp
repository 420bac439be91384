#pragma once
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// Reads `bytes` of device memory, a multiple of 16, once and adds them up: what the memory can deliver at
/// most. `blocks` blocks share the work. `sum` takes one number, so that nothing is left out.
void read_memory(const void* data, std::int64_t bytes, int blocks, std::uint32_t* sum, Stream stream);

}  // namespace foretoken::cuda

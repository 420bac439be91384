#pragma once
#include "kernels/cuda/attention.hpp"

namespace foretoken::cuda {

/// Attention without tensor cores for any batch, block size and storage: the twin of the fast kernels on the
/// device, and the way for f32. A row's bits depend on its own keys and values alone; a row that sees nothing
/// gives zeros.
void attention_simple(const AttentionArgs& args, Stream stream);

}  // namespace foretoken::cuda

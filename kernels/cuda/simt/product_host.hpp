#pragma once
#include "kernels/cuda/product_simple.hpp"

namespace foretoken::cuda::simt {

/// What product_simple computes, as loops of the calling thread: quick where an emulated kernel would take
/// long. Sums run over the depth in order; products are rounded before they are added, which the kernel
/// leaves out.
void product_host(const ProductArgs& args);

}  // namespace foretoken::cuda::simt

#include "kernels/cpu/kernels.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "kernels/cpu/tables.hpp"

namespace foretoken::cpu {

const Kernels& kernels(Isa isa) {
  if (!is_available(isa)) {
    std::cerr << "this processor has no " << isa_name(isa) << std::endl;
    std::abort();
  }
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2: return avx2_kernels();
    case Isa::avx512: return avx512_kernels();
    case Isa::avx512_bf16: return avx512_bf16_kernels();
#endif
    default: return portable_kernels();
  }
}

const Kernels& kernels() { return kernels(active_isa()); }

void copy_blocks(const CopyBlocksArgs& args, Share share) {
  const Range mine = split(args.blocks, share);
  for (std::int64_t i = mine.begin; i < mine.end; ++i)
    std::memcpy(
        static_cast<std::byte*>(args.target) + static_cast<std::size_t>(args.to[i]) * args.block_bytes,
        static_cast<const std::byte*>(args.source) +
            static_cast<std::size_t>(args.from[i]) * args.block_bytes,
        args.block_bytes);
}

void fill_rope_table(int positions, int head_dim, double theta, float* cosine, float* sine) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const double frequency = std::pow(theta, -2.0 * i / head_dim);
    for (int p = 0; p < positions; ++p) {
      cosine[std::int64_t{p} * half + i] = static_cast<float>(std::cos(p * frequency));
      sine[std::int64_t{p} * half + i] = static_cast<float>(std::sin(p * frequency));
    }
  }
}

}  // namespace foretoken::cpu

#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/types.hpp"

namespace foretoken::cuda {

/// Whole blocks from one pool to another, or within one when no block is both source and target. Either pool may be host
/// memory that the device sees.
struct CopyBlocksArgs {
  int blocks = 0;
  /// A multiple of 16.
  std::size_t block_bytes = 0;
  const void* source = nullptr;
  void* target = nullptr;
  /// [blocks] each: block numbers in the source pool and in the target pool.
  const std::int32_t* from = nullptr;
  const std::int32_t* to = nullptr;
};

/// Runs on `stream`.
void copy_blocks(const CopyBlocksArgs& args, Stream stream);

}  // namespace foretoken::cuda

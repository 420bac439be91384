#pragma once
#include <cstddef>

#include "kernels/cpu/isa.hpp"

namespace foretoken::bench {

/// The loops behind the limits: one call runs on one thread.
struct PeakLoop {
  /// Runs `rounds` of the loop and returns a value that depends on all of it.
  float (*run)(long rounds);
  /// Floating-point operations of one round.
  double flops_per_round;
};

/// The multiply-add loop of an ISA, with bf16 dot products where it has them and `stored` is bf16.
PeakLoop peak_loop(cpu::Isa isa, ElementType stored);

/// Reads `bytes` (a multiple of 256, 64-byte aligned) with the widest loads available and returns their sum.
float read_all(const std::byte* data, std::size_t bytes);

}  // namespace foretoken::bench

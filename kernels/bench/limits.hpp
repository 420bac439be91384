#pragma once
#include <cstddef>
#include <vector>

#include "kernels/cpu/isa.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace foretoken::bench {

/// Seconds to read `bytes` (a multiple of 256 per member is best) at `data` once, every member of `pool` its
/// part, with the widest loads of this processor. With `passes` above 1 the same bytes are read again.
double read_seconds(cpu::ThreadPool& pool, const std::byte* data, std::size_t bytes, int passes);

/// Seconds to copy `bytes` from `source` to `target`, dealt out over the team.
double copy_seconds(cpu::ThreadPool& pool, const std::byte* source, std::byte* target, std::size_t bytes);

/// Seconds of a loop that does nothing but multiply and add in registers, and the floating-point operations
/// it did.
struct PeakSample {
  double seconds = 0;
  double flops = 0;
};

/// Runs the multiply-add loop of `isa` on every member: f32 FMA, or dot products of bf16 pairs where `stored`
/// is bf16 and `isa` has them. What kernels of that ISA can reach at most.
PeakSample peak_sample(cpu::ThreadPool& pool, cpu::Isa isa, ElementType stored);

/// Bandwidth of reading a working set over and over.
struct BandwidthPoint {
  std::size_t bytes = 0;
  int threads = 1;
  double bytes_per_s = 0;
};

/// Arithmetic peak of an ISA and storage type.
struct PeakPoint {
  cpu::Isa isa = cpu::Isa::portable;
  ElementType stored = ElementType::f32;
  int threads = 1;
  double flops_per_s = 0;
};

/// What this machine can do at most, each from the 10th percentile of interleaved readings.
struct MachineLimits {
  /// Reading, by working-set size (32 KiB to 512 MiB) and threads.
  std::vector<BandwidthPoint> read;
  /// Copying 256 MiB, by threads; bytes copied, which is half the traffic.
  std::vector<BandwidthPoint> copy;
  /// Every available ISA, f32, and bf16 where it differs.
  std::vector<PeakPoint> peaks;
};

/// Memory that `measure_limits` needs.
inline constexpr std::size_t kLimitsBytes = std::size_t{512} << 20;
/// Measures the limits with `threads_min` and up to `threads_max` threads, taking about `seconds` altogether,
/// but at least `rounds_min` readings of each.
MachineLimits measure_limits(int threads_max, double seconds, int threads_min = 1, int rounds_min = 10);

/// Read bandwidth at a working set of `bytes`, between the measured points by the logarithm of the size; the
/// ends hold beyond them. `threads` must have been measured.
double read_bandwidth(const MachineLimits& limits, std::size_t bytes, int threads);

/// The peak measured for `isa` with weights stored as `stored`.
double peak_flops(const MachineLimits& limits, cpu::Isa isa, ElementType stored, int threads);

}  // namespace foretoken::bench

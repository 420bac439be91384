#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace foretoken::cuda::simt {

/// What a thread does to a byte.
enum class Access : std::uint8_t { read, write, atomic };

/// Whether machines look for races; set by races/hooks.cpp where it is linked, before any kernel runs.
bool& looks_for_races();

/// Finds bytes of shared memory that two threads of a block touch, one of them writing, with no barrier
/// between: by happens-before, so whatever the order of threads was. Only __syncthreads orders warps, and
/// only that and __syncwarp order lanes; shuffles, votes, ldmatrix and mma do not.
class Races {
 public:
  /// For memory of `bytes` bytes.
  explicit Races(std::size_t bytes);

  /// Forgets what earlier blocks did; the next has `threads` threads.
  void begin_block(std::uint32_t threads);
  /// All threads have met.
  void barrier() { ++epoch_; }
  /// The lanes of `mask` of `warp` have met.
  void sync_warp(std::uint32_t warp, std::uint32_t mask);
  /// `thread` touches the bytes that begin at `offset`. The first race is kept as the report.
  void touch(std::uint32_t thread, std::size_t offset, std::size_t bytes, Access access);
  /// The first race of the block, or nothing.
  const std::string& report() const { return report_; }

 private:
  /// One access: who, after how many barriers of the block and how many meetings of his own in his warp.
  struct Mark {
    std::uint32_t epoch = 0;
    std::uint32_t clock = 0;
    std::uint32_t thread = 0;
    bool is_atomic = false;
  };
  /// The last write of a byte, and its last reads by two different threads.
  struct Cell {
    Mark write;
    std::array<Mark, 2> reads;
  };
  bool is_before(const Mark& mark, std::uint32_t thread) const;
  void find(const Mark& mark, const char* what, std::uint32_t thread, std::size_t offset, Access access);

  std::vector<Cell> cells_;
  // What each thread knows of the clocks of the lanes of its warp; its own entry is its own clock.
  std::vector<std::array<std::uint32_t, 32>> clocks_;
  std::uint32_t epoch_ = 1;
  std::string report_;
};

}  // namespace foretoken::cuda::simt

#pragma once
#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/simt/emulator.hpp"
#include "kernels/cuda/simt/fiber.hpp"
#include "kernels/cuda/simt/shared_memory.hpp"

namespace foretoken::cuda::simt {

/// A copy to shared memory that has not landed.
struct AsyncCopy {
  void* shared;
  const void* global;
  bool is_read;
};

/// The copies of one thread in order, and where its closed groups end.
struct AsyncQueue {
  std::vector<AsyncCopy> copies;
  std::vector<std::size_t> group_ends;
  std::size_t landed_copies = 0;
  std::size_t landed_groups = 0;
};

/// One CUDA thread: where it runs, and what it waits for.
struct Thread {
  /// Null before it has started and after it has ended.
  Fiber* fiber = nullptr;
  std::uint32_t mask = 0;
  const char* operation = nullptr;
  Site site;
  AsyncQueue copies;
};

/// 32 threads, in sets by what they do.
struct Warp {
  std::uint32_t fresh = 0;
  std::uint32_t ready = 0;
  std::uint32_t at_operation = 0;
  std::uint32_t at_barrier = 0;
  std::uint32_t ended = 0;
  std::array<const void*, 32> in{};
  std::array<void*, 32> out{};
};

/// Runs blocks on one OS thread. Fibers and shared memory are kept from launch to launch.
class Machine {
 public:
  /// The calling OS thread's machine.
  static Machine& mine();

  /// Prepares for blocks of `launch`.
  void begin(const Launch& launch, Body body, const void* context, const Options& options);
  /// Runs block `index` of the grid to its end. Throws what ended it early.
  void run_block(std::uint64_t index);
  /// Whether a kernel is running on this OS thread.
  bool is_running() const { return is_running_; }
  /// What was done since the last call.
  Counters take_counters();

  /// What device code asks for; see emulator.hpp.
  void warp_operation(std::uint32_t mask, const char* name, WarpFunction function, const void* in, void* out,
                      const Site& site);
  void barrier(const Site& site);
  [[noreturn]] void fault(const std::string& what);
  std::uint32_t lane() const { return current_ % 32; }
  SharedMemory& shared() { return shared_; }
  AsyncQueue& copies() { return threads_[current_].copies; }

 private:
  /// Unwinds a thread whose block has failed.
  struct Cancelled {};
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  static void fiber_main();
  void run_current();
  std::uint32_t pick();
  void enter(std::uint32_t thread);
  Fiber& fiber_for(std::uint32_t thread);
  Fiber& take_fiber();
  void wait();
  void finish();
  void check_end();
  void fail(std::exception_ptr error);
  void update(std::uint32_t warp);
  std::string describe(std::uint32_t thread, const std::string& what) const;
  std::string deadlock() const;
  std::string where(const Site& site) const;
  void join(Warp& warp, std::uint32_t mask, const char* name, const Site& site);

  Launch launch_{};
  Options options_;
  Body body_ = nullptr;
  const void* context_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t warps_used_ = 0;
  std::uint32_t current_ = 0;
  // Warps with threads that can run, one bit each.
  std::uint32_t runnable_ = 0;
  std::uint32_t alive_ = 0;
  std::uint32_t at_barrier_ = 0;
  Site barrier_site_;
  bool is_running_ = false;
  bool is_cancelling_ = false;
  std::exception_ptr error_;
  std::uint64_t random_ = 0;
  Counters counters_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber host_;
  SharedMemory shared_;
};

}  // namespace foretoken::cuda::simt

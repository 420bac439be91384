#pragma once
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

/// Runs CUDA device code on a CPU. Every CUDA thread is a fiber, scheduled cooperatively: a thread runs until
/// it waits for others, so that orders between barriers are extreme (the whole of warp 0 before warp 1, and
/// so on) and chosen by Options. A thread gets a stack of its own only when it waits; kernels without
/// barriers run as plain loops.
///
/// Caught: threads at different or missing barriers, exited threads at a barrier or named by a warp
/// operation, divergent warp operations, shuffles from lanes outside the mask, deadlocks, cp.async without
/// its wait (bytes land, and the source is read, only at the latest legal moment), reads of unwritten shared
/// memory (it starts as NaN in each block), writes just beside shared memory (guard bytes; every access under
/// ASan), misaligned cp.async and ldmatrix, launches that no device accepts. Missing __syncthreads and
/// __syncwarp show as wrong results in at least one of the orders whenever the value read depends on the
/// order; ldmatrix sees no later lane's writes. Linked with simt/races/hooks.cpp, kernels compiled with
/// -fsanitize=thread report every race in shared memory, whatever the order was.
///
/// Blind spots, and what covers them:
/// - Races in global memory: not covered; kernels talk to other blocks only through the end of the kernel.
/// - Fences and the order in which stores become visible: stores are seen at once. Not covered, for the same
/// reason.
/// - Data read before grid_dependency_wait: not covered; kernels of a stream run one after the other.
/// - Two calls of one helper function look like the same barrier or shuffle: what differs then is counted, so
/// a
///   thread that skips one is found at the latest when it ends. Not covered beyond that.
/// - A read of a byte by three threads keeps two of them in mind for the search of races: a write may miss
/// the third.
///   Not covered.
/// - Bank conflicts, coalescing, occupancy, speed: benches on a device. Registers and spills:
/// tests/cuda/registers.
/// - Approximate arithmetic (exp2_fast, log2_fast, __expf, rsqrtf) is as exact as the host's library here,
/// and mma
///   sums in single precision in order of k, where devices use trees of their own: tolerances of tests on a
///   device.
/// - Misaligned vector loads: UBSan. Out-of-bounds global memory: ASan.
/// - The limits of 48 KiB of static and 227 KiB of all shared memory are those of sm_90; sm_80 has 163 KiB.
/// Not
///   covered.
/// - wgmma, tensor maps, clusters, mbarriers, named barriers: absent, so kernels that use them do not
/// compile.
namespace foretoken::cuda::simt {

/// Which of several runnable threads runs first: the lowest, the highest, or any.
enum class Order : std::uint8_t { forward, reverse, random };

/// How launches run, for the whole process. Not to be changed while a kernel runs.
struct Options {
  Order order = Order::forward;
  /// Of Order::random.
  std::uint64_t seed = 1;
  /// OS threads that share the blocks of a launch.
  int threads = 1;
};

/// The options in use, to be changed in place.
Options& options();

/// What has been done since the process began.
struct Counters {
  std::uint64_t launches = 0;
  std::uint64_t blocks = 0;
  std::uint64_t threads = 0;
  std::uint64_t switches = 0;
  std::uint64_t barriers = 0;
  std::uint64_t warp_operations = 0;
};

/// Totals over all OS threads, complete between launches.
Counters counters();

/// A defect of a kernel, found while it ran. The message names kernel, block, thread and what happened.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A triple of sizes, or of coordinates.
struct Extent {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

/// What a launch runs.
struct Launch {
  const char* kernel;
  Extent grid;
  Extent block;
  std::size_t dynamic_bytes;
};

using Body = void (*)(const void* context);
using Site = std::source_location;

/// Runs `body(context)` for every thread of the grid, and returns when all have ended. Throws LaunchError for
/// launches that a device would refuse, Fault for defects, and whatever the body throws. Nothing is leaked
/// then.
void run(const Launch& launch, Body body, const void* context);

/// What the threads of a warp do together: `in[lane]` and `out[lane]` are what each lane of `mask` passed.
using WarpFunction = void (*)(std::uint32_t mask, const void* const* in, void* const* out);

/// Waits for all lanes of `mask` to make the same call from the same place; the last one runs `function` for
/// all.
void warp_operation(std::uint32_t mask, const char* name, WarpFunction function, const void* in, void* out,
                    const Site& site);

/// Waits for all lanes of `mask`; what each wrote before is seen by all after.
void sync_warp(std::uint32_t mask, const Site& site);

/// Waits for all threads of the block, none of which may have ended, at the same place.
void barrier(const Site& site);

/// The calling thread's number within its warp.
std::uint32_t lane();

/// Dynamic shared memory of the running block, aligned to 128 bytes.
unsigned char* dynamic_shared();

/// The running block's memory for the declaration that `key` stands for; the same for all threads of the
/// block.
void* static_shared(const void* key, std::size_t bytes, std::size_t alignment);

/// Queues a copy of 16 bytes, or of zeros, from global to shared memory in the calling thread's open group.
void async_copy(void* shared, const void* global, bool is_read);

/// Closes the calling thread's open group of copies.
void async_commit();

/// Lets the copies of all but the last `pending` closed groups of the calling thread land.
void async_wait(int pending);

/// Tells the search for races that the calling thread reads, or writes, bytes that may be shared. Kernels
/// need not: where races are looked for, the compiler does it for them.
void note_read(const void* address, std::size_t bytes);
void note_write(const void* address, std::size_t bytes);

/// Ends the launch with a Fault that names the running thread.
[[noreturn]] void fault(const std::string& what);

/// Ends the launch with a Fault unless the bytes at `address` are aligned and lie in the block's shared
/// memory.
void require_shared(const void* address, std::size_t bytes, std::size_t alignment, const char* operation);

}  // namespace foretoken::cuda::simt

#include "kernels/cuda/simt/emulator.hpp"

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/cuda/simt/machine.hpp"
#include "kernels/cuda/types.hpp"

namespace foretoken::cuda::simt {
namespace {

constexpr std::size_t kSharedBytesMax = 227 << 10;
constexpr std::size_t kStaticBytesMax = 48 << 10;

std::mutex totals_mutex;
Counters totals;

void add_to_totals(const Counters& more) {
  const std::lock_guard lock(totals_mutex);
  totals.launches += more.launches;
  totals.blocks += more.blocks;
  totals.threads += more.threads;
  totals.switches += more.switches;
  totals.barriers += more.barriers;
  totals.warp_operations += more.warp_operations;
}

void check_shape(const Launch& launch) {
  const auto [gx, gy, gz] = launch.grid;
  const auto [bx, by, bz] = launch.block;
  require(gx > 0 && gy > 0 && gz > 0 && gx <= 0x7fffffffU && gy <= 65535 && gz <= 65535, launch.kernel,
          "invalid grid");
  require(bx > 0 && by > 0 && bz > 0 && bx <= 1024 && by <= 1024 && bz <= 64 &&
              std::uint64_t{bx} * by * bz <= 1024,
          launch.kernel, "invalid block");
  require(launch.dynamic_bytes <= kSharedBytesMax, launch.kernel, "too much dynamic shared memory");
}

/// The blocks of one launch, dealt out to whoever asks next. After an error no more are.
class Blocks {
 public:
  Blocks(const Launch& launch, Body body, const void* context)
      : launch_(launch), body_(body), context_(context), options_(options()) {}

  std::uint64_t count() const { return std::uint64_t{launch_.grid.x} * launch_.grid.y * launch_.grid.z; }

  void work() {
    Machine& machine = Machine::mine();
    try {
      machine.begin(launch_, body_, context_, options_);
      for (std::uint64_t i = next_++; i < count(); i = next_++) machine.run_block(i);
    } catch (...) {
      next_ = count();
      const std::lock_guard lock(mutex_);
      if (error_ == nullptr) error_ = std::current_exception();
    }
    add_to_totals(machine.take_counters());
  }

  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

 private:
  Launch launch_;
  Body body_;
  const void* context_;
  Options options_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// OS threads that stay, and with them the stacks of their fibers.
class Helpers {
 public:
  ~Helpers() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// Lets `count` helpers and the caller work on `blocks`; returns when all are done. One launch at a time.
  void run(Blocks& blocks, int count) {
    const std::lock_guard one_launch(launch_mutex_);
    while (static_cast<int>(threads_.size()) < count) threads_.emplace_back([this] { serve(); });
    {
      const std::lock_guard lock(mutex_);
      blocks_ = &blocks;
      wanted_ = count;
      busy_ = count;
    }
    changed_.notify_all();
    blocks.work();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_stopping_ || wanted_ > 0; });
      if (is_stopping_) return;
      --wanted_;
      Blocks* blocks = blocks_;
      lock.unlock();
      blocks->work();
      lock.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }

  std::mutex launch_mutex_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Blocks* blocks_ = nullptr;
  int wanted_ = 0;
  int busy_ = 0;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

Options& options() {
  static Options instance;
  return instance;
}

Counters counters() {
  const std::lock_guard lock(totals_mutex);
  return totals;
}

void run(const Launch& launch, Body body, const void* context) {
  check_shape(launch);
  require(!Machine::mine().is_running(), launch.kernel, "launched from device code");
  add_to_totals({.launches = 1});
  Blocks blocks(launch, body, context);
  const auto helpers_wanted =
      static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(options().threads), blocks.count())) - 1;
  if (helpers_wanted <= 0) {
    blocks.work();
  } else {
    static Helpers helpers;
    helpers.run(blocks, helpers_wanted);
  }
  blocks.rethrow();
}

void warp_operation(std::uint32_t mask, const char* name, WarpFunction function, const void* in, void* out,
                    const Site& site) {
  Machine::mine().warp_operation(mask, name, function, in, out, site);
}

void barrier(const Site& site) { Machine::mine().barrier(site); }

std::uint32_t lane() { return Machine::mine().lane(); }

unsigned char* dynamic_shared() { return Machine::mine().shared().dynamic(); }

void* static_shared(const void* key, std::size_t bytes, std::size_t alignment) {
  void* piece = Machine::mine().shared().piece(key, bytes, alignment);
  const std::size_t used = Machine::mine().shared().used_bytes();
  if (bytes > kStaticBytesMax || used > kSharedBytesMax) fault("too much static shared memory");
  return piece;
}

void fault(const std::string& what) { Machine::mine().fault(what); }

void require_shared(const void* address, std::size_t bytes, std::size_t alignment, const char* operation) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    fault(std::string(operation) + " at an address that is not a multiple of " + std::to_string(alignment));
  if (!Machine::mine().shared().contains(address, bytes))
    fault(std::string(operation) + " outside the block's shared memory");
}

void async_copy(void* shared, const void* global, bool is_read) {
  require_shared(shared, 16, 16, "cp.async");
  if (is_read && reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    fault("cp.async from an address that is not a multiple of 16");
#if defined(__SANITIZE_ADDRESS__)
  // A source out of bounds is reported here, where the kernel asks for it, rather than at the wait.
  unsigned char probe[16];
  if (is_read) std::memcpy(probe, global, sizeof probe);
  asm volatile("" ::"r"(probe) : "memory");
#endif
  Machine::mine().copies().copies.push_back({shared, global, is_read});
}

void async_commit() {
  AsyncQueue& queue = Machine::mine().copies();
  queue.group_ends.push_back(queue.copies.size());
}

void async_wait(int pending) {
  AsyncQueue& queue = Machine::mine().copies();
  while (queue.group_ends.size() - queue.landed_groups > static_cast<std::size_t>(pending)) {
    const std::size_t end = queue.group_ends[queue.landed_groups++];
    for (; queue.landed_copies < end; ++queue.landed_copies) {
      const AsyncCopy& copy = queue.copies[queue.landed_copies];
      if (copy.is_read)
        std::memcpy(copy.shared, copy.global, 16);
      else
        std::memset(copy.shared, 0, 16);
    }
  }
  if (queue.landed_groups < queue.group_ends.size() || queue.landed_copies < queue.copies.size()) return;
  queue.copies.clear();
  queue.group_ends.clear();
  queue.landed_copies = queue.landed_groups = 0;
}

}  // namespace foretoken::cuda::simt

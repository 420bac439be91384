#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernels/cpu/share.hpp"

namespace foretoken::cpu {

/// A rendezvous of a fixed number of threads that spins for at most 50 microseconds and then parks, so that
/// it costs half a microsecond between running threads and cannot starve them on a crowded machine.
class SpinBarrier {
 public:
  /// For `count` threads.
  explicit SpinBarrier(int count) : count_(count) {}
  /// Returns when all threads have arrived; what they wrote before is visible after. Reusable at once.
  void arrive_and_wait();

 private:
  const int count_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> generation_{0};
};

/// What a function run by the pool knows of its fellows.
struct Team {
  Share share;
  SpinBarrier* meeting = nullptr;
  /// Waits for all members of the team. Every member must make the same calls.
  void barrier() const {
    if (share.count > 1) meeting->arrive_and_wait();
  }
};

/// A fixed set of threads for fork and join. The caller is member 0 and works too; the others wait for the
/// next call by spinning for at most 50 microseconds and park after that. One call at a time, always from the
/// same thread. Functions must not throw.
class ThreadPool {
 public:
  /// A team of `threads` (at least 1) members, the caller included: `threads - 1` threads are started.
  explicit ThreadPool(int threads);
  /// Ends the threads. A launched function must have been joined.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Members of the team, the caller included.
  int size() const { return count_; }

  /// Runs `function(const Team&)` on every member and returns when all are done.
  template <class Function>
  void run(Function&& function) {
    launch(function);
    join();
  }

  /// Lets the other members start `function` and returns at once; the caller may do something else (plan the
  /// next step) and must then call `join`. `function` is kept by reference and must live until then.
  template <class Function>
  void launch(Function& function) {
    using Plain = std::remove_const_t<Function>;
    start(const_cast<Plain*>(&function),
          [](void* context, const Team& team) { (*static_cast<Plain*>(context))(team); });
  }

  /// Does the caller's share of the launched function and returns when all members are done.
  void join();

 private:
  using Entry = void (*)(void*, const Team&);
  void start(void* context, Entry entry);
  void serve(int index);

  const int count_;
  SpinBarrier meeting_;
  void* context_ = nullptr;
  Entry entry_ = nullptr;
  bool stopping_ = false;
  alignas(64) std::atomic<int> call_{0};
  alignas(64) std::atomic<int> pending_{0};
  std::vector<std::thread> threads_;
};

}  // namespace foretoken::cpu

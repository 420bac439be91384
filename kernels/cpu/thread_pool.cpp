#include "kernels/cpu/thread_pool.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>

namespace foretoken::cpu {
namespace {

constexpr std::chrono::microseconds kSpinLimit{50};

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Returns once `value` differs from `old`, spinning first and parked in the kernel after the limit. The
/// clock is read every few pauses only, so that the common short wait ends within nanoseconds of the store.
void wait_until_changed(const std::atomic<int>& value, int old) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
    if (std::chrono::steady_clock::now() - begin > kSpinLimit) break;
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

void SpinBarrier::arrive_and_wait() {
  const int generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    generation_.notify_all();
    return;
  }
  wait_until_changed(generation_, generation);
}

ThreadPool::ThreadPool(int threads) : count_(threads), meeting_(threads) {
  if (threads < 1) {
    std::cerr << "a thread pool needs at least one member, not " << threads << std::endl;
    std::abort();
  }
  threads_.reserve(static_cast<std::size_t>(threads - 1));
  for (int index = 1; index < threads; ++index) threads_.emplace_back([this, index] { serve(index); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::start(void* context, Entry entry) {
  context_ = context;
  entry_ = entry;
  pending_.store(count_ - 1, std::memory_order_relaxed);
  call_.fetch_add(1, std::memory_order_release);
  call_.notify_all();
}

void ThreadPool::join() {
  entry_(context_, Team{Share{0, count_}, &meeting_});
  for (int left = pending_.load(std::memory_order_acquire); left != 0;
       left = pending_.load(std::memory_order_acquire))
    wait_until_changed(pending_, left);
}

void ThreadPool::serve(int index) {
  for (int call = 0;; ++call) {
    wait_until_changed(call_, call);
    if (stopping_) return;
    entry_(context_, Team{Share{index, count_}, &meeting_});
    pending_.fetch_sub(1, std::memory_order_acq_rel);
    pending_.notify_all();
  }
}

}  // namespace foretoken::cpu

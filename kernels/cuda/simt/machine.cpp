#include "kernels/cuda/simt/machine.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "kernels/cuda/simt/builtins.hpp"

namespace foretoken::cuda::simt {
namespace {

bool is_same(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

std::string triple(const Extent& e) {
  return "(" + std::to_string(e.x) + "," + std::to_string(e.y) + "," + std::to_string(e.z) + ")";
}

Extent coordinates(std::uint64_t index, const Extent& size) {
  return {static_cast<std::uint32_t>(index % size.x), static_cast<std::uint32_t>(index / size.x % size.y),
          static_cast<std::uint32_t>(index / size.x / size.y)};
}

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Machine& Machine::mine() {
  static thread_local Machine machine;
  return machine;
}

void Machine::begin(const Launch& launch, Body body, const void* context, const Options& options) {
  launch_ = launch;
  body_ = body;
  context_ = context;
  options_ = options;
  size_ = launch.block.x * launch.block.y * launch.block.z;
  warps_used_ = (size_ + 31) / 32;
  if (threads_.size() < size_) threads_.resize(size_);
  if (warps_.size() < warps_used_) warps_.resize(warps_used_);
  shared_.begin_launch(launch.dynamic_bytes);
  if (looks_for_races() && races_ == nullptr) races_ = std::make_unique<Races>(SharedMemory::capacity());
  blockDim = launch.block;
  gridDim = launch.grid;
}

void Machine::run_block(std::uint64_t index) {
  ++counters_.blocks;
  counters_.threads += size_;
  shared_.begin_block();
  if (races_ != nullptr) races_->begin_block(size_);
  for (std::uint32_t w = 0; w < warps_used_; ++w) {
    const std::uint32_t lanes = std::min(32U, size_ - w * 32);
    warps_[w].fresh = lanes == 32 ? 0xffffffffU : (1U << lanes) - 1;
    warps_[w].ready = warps_[w].at_operation = warps_[w].at_barrier = warps_[w].ended = 0;
  }
  runnable_ = warps_used_ == 32 ? 0xffffffffU : (1U << warps_used_) - 1;
  alive_ = size_;
  at_barrier_ = 0;
  is_cancelling_ = false;
  random_ = mix(options_.seed * 0x9e3779b97f4a7c15U + index);
  blockIdx = coordinates(index, launch_.grid);
  is_running_ = true;
  const std::uint32_t first = pick();
  enter(first);
  Fiber& fiber = take_fiber();
  threads_[first].fiber = &fiber;
  ++counters_.switches;
  host_.switch_to(fiber);
  is_running_ = false;
  if (error_ == nullptr && !shared_.guards_are_intact())
    error_ = std::make_exception_ptr(
        Fault(describe(kNone, "a thread wrote just outside a piece of shared memory")));
  if (error_ == nullptr && races_ != nullptr && !races_->report().empty())
    error_ = std::make_exception_ptr(Fault(describe(kNone, races_->report())));
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

Counters Machine::take_counters() { return std::exchange(counters_, {}); }

void Machine::fiber_main() {
  Fiber::arrived();
  while (true) {
    mine().run_current();
    mine().finish();
  }
}

/// Runs the current thread to its end. An exception must have been dealt with before another fiber runs,
/// since the language keeps those in flight per OS thread.
void Machine::run_current() {
  std::exception_ptr error;
  try {
    body_(context_);
    check_end();
  } catch (const Cancelled&) {
  } catch (...) {
    error = std::current_exception();
  }
  if (error != nullptr) fail(std::move(error));
}

/// The next thread that can run, by the order of the options, or kNone.
std::uint32_t Machine::pick() {
  if (runnable_ == 0) return kNone;
  const auto set = [&](std::uint32_t w) { return warps_[w].fresh | warps_[w].ready; };
  if (options_.order == Order::forward) {
    const auto w = static_cast<std::uint32_t>(std::countr_zero(runnable_));
    return w * 32 + static_cast<std::uint32_t>(std::countr_zero(set(w)));
  }
  if (options_.order == Order::reverse) {
    const auto w = static_cast<std::uint32_t>(std::bit_width(runnable_)) - 1;
    return w * 32 + static_cast<std::uint32_t>(std::bit_width(set(w))) - 1;
  }
  random_ += 0x9e3779b97f4a7c15U;
  const std::uint64_t bits = mix(random_);
  const auto any = [](std::uint32_t from, std::uint64_t turn) {
    const auto by = static_cast<int>(turn & 31U);
    return (static_cast<std::uint32_t>(std::countr_zero(std::rotr(from, by)) + by)) & 31U;
  };
  const std::uint32_t w = any(runnable_, bits);
  return w * 32 + any(set(w), bits >> 8);
}

/// Makes `thread` the current one; its fiber is to be switched to next.
void Machine::enter(std::uint32_t thread) {
  Warp& warp = warps_[thread / 32];
  const std::uint32_t bit = 1U << thread % 32;
  warp.fresh &= ~bit;
  warp.ready &= ~bit;
  update(thread / 32);
  current_ = thread;
  threadIdx = launch_.block.x == size_ ? Extent{thread, 0, 0} : coordinates(thread, launch_.block);
}

void Machine::update(std::uint32_t warp) {
  const bool can_run = (warps_[warp].fresh | warps_[warp].ready) != 0;
  runnable_ = (runnable_ & ~(1U << warp)) | static_cast<std::uint32_t>(can_run) << warp;
}

Fiber& Machine::take_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(&Machine::fiber_main));
    return *fibers_.back();
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return *fiber;
}

Fiber& Machine::fiber_for(std::uint32_t thread) {
  if (threads_[thread].fiber == nullptr) threads_[thread].fiber = &take_fiber();
  return *threads_[thread].fiber;
}

/// Lets others run until the current thread is ready again.
void Machine::wait() {
  const std::uint32_t me = current_;
  const std::uint32_t next = pick();
  if (next == kNone) {
    warps_[me / 32].at_operation &= ~(1U << me % 32);
    if ((warps_[me / 32].at_barrier >> me % 32 & 1U) != 0) {
      warps_[me / 32].at_barrier &= ~(1U << me % 32);
      --at_barrier_;
    }
    fault(deadlock());
  }
  enter(next);
  ++counters_.switches;
  threads_[me].fiber->switch_to(fiber_for(next));
  if (is_cancelling_) throw Cancelled{};
}

/// Called when the current thread has ended: the fiber goes on with a thread that has not begun, or sleeps.
void Machine::finish() {
  Fiber& fiber = *std::exchange(threads_[current_].fiber, nullptr);
  AsyncQueue& queue = threads_[current_].copies;
  queue.copies.clear();
  queue.group_ends.clear();
  queue.landed_copies = queue.landed_groups = 0;
  warps_[current_ / 32].ended |= 1U << current_ % 32;
  --alive_;
  std::uint32_t next = pick();
  if (next == kNone && alive_ > 0 && !is_cancelling_) {
    fail(std::make_exception_ptr(Fault(describe(current_, deadlock()))));
    next = pick();
  }
  if (next != kNone) {
    enter(next);
    if (threads_[next].fiber == nullptr) {
      threads_[next].fiber = &fiber;
      return;
    }
  }
  idle_.push_back(&fiber);
  ++counters_.switches;
  fiber.switch_to(next == kNone ? host_ : *threads_[next].fiber);
}

/// What must hold when a thread ends: nobody counts on it, and all its copies have been waited for.
void Machine::check_end() {
  const AsyncQueue& queue = threads_[current_].copies;
  if (queue.landed_copies != queue.copies.size()) fault("ended without waiting for its cp.async");
  if (at_barrier_ > 0)
    fault("ended while " + std::to_string(at_barrier_) + " threads of its block wait at __syncthreads, " +
          where(barrier_site_));
  const Warp& warp = warps_[current_ / 32];
  for (std::uint32_t left = warp.at_operation; left != 0; left &= left - 1) {
    const Thread& other = threads_[current_ / 32 * 32 + static_cast<std::uint32_t>(std::countr_zero(left))];
    if ((other.mask >> current_ % 32 & 1U) != 0)
      fault(std::string("ended while lanes of its warp wait for it in ") + other.operation + ", " +
            where(other.site));
  }
}

/// Remembers the first error and lets every thread that has begun unwind.
void Machine::fail(std::exception_ptr error) {
  if (error_ == nullptr) error_ = std::move(error);
  if (is_cancelling_) return;
  is_cancelling_ = true;
  at_barrier_ = 0;
  for (std::uint32_t w = 0; w < warps_used_; ++w) {
    Warp& warp = warps_[w];
    warp.ready |= warp.at_operation | warp.at_barrier;
    warp.at_operation = warp.at_barrier = 0;
    alive_ -= static_cast<std::uint32_t>(std::popcount(warp.fresh));
    warp.ended |= std::exchange(warp.fresh, 0);
    update(w);
  }
}

void Machine::sync_warp(std::uint32_t mask, const Site& site) {
  // The last lane to come lets the search know, through the address of the machine that each passes.
  const WarpFunction meet = [](std::uint32_t lanes, const void* const* in, void* const*) {
    const void* passed = in[std::countr_zero(lanes)];
    auto* machine = const_cast<Machine*>(static_cast<const Machine*>(passed));
    machine->races_->sync_warp(machine->current_ / 32, lanes);
  };
  warp_operation(mask, "__syncwarp", races_ != nullptr ? meet : nullptr, this, nullptr, site);
}

void Machine::barrier(const Site& site) {
  if (is_cancelling_) throw Cancelled{};
  if (alive_ != size_)
    fault(std::to_string(size_ - alive_) + " threads of the block have ended before __syncthreads, " +
          where(site));
  if (at_barrier_ == 0) barrier_site_ = site;
  if (!is_same(site, barrier_site_))
    fault("threads wait at different barriers: " + where(barrier_site_) + " and " + where(site));
  Warp& warp = warps_[current_ / 32];
  if (++at_barrier_ < size_) {
    warp.at_barrier |= 1U << current_ % 32;
    return wait();
  }
  ++counters_.barriers;
  if (races_ != nullptr) races_->barrier();
  at_barrier_ = 0;
  for (std::uint32_t w = 0; w < warps_used_; ++w) {
    warps_[w].ready |= std::exchange(warps_[w].at_barrier, 0);
    update(w);
  }
}

/// Checks that the current thread's call fits those of the lanes that wait already.
void Machine::join(Warp& warp, std::uint32_t mask, const char* name, const Site& site) {
  const std::uint32_t bit = 1U << current_ % 32;
  if ((mask & bit) == 0)
    fault(std::string(name) + " with a mask that lacks the calling lane, " + where(site));
  const std::uint32_t lanes = std::min(32U, size_ - current_ / 32 * 32);
  if (lanes < 32 && mask >> lanes != 0)
    fault(std::string(name) + " names lanes that the block does not have, " + where(site));
  if ((mask & warp.ended) != 0) fault(std::string(name) + " names lanes that have ended, " + where(site));
  for (std::uint32_t left = warp.at_operation; left != 0; left &= left - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(left));
    const Thread& other = threads_[current_ / 32 * 32 + l];
    if (other.mask == mask && (other.operation == name || std::strcmp(other.operation, name) == 0) &&
        is_same(other.site, site)) {
      // All that wait with this mask have been compared with each other before.
      if (other.mask == 0xffffffffU) return;
    } else if ((other.mask & bit) != 0 || (mask >> l & 1U) != 0) {
      fault(std::string("divergent warp operations: ") + name + ", " + where(site) + ", while lane " +
            std::to_string(l) + " waits in " + other.operation + ", " + where(other.site));
    }
  }
}

void Machine::warp_operation(std::uint32_t mask, const char* name, WarpFunction function, const void* in,
                             void* out, const Site& site) {
  if (is_cancelling_) throw Cancelled{};
  Warp& warp = warps_[current_ / 32];
  Thread& me = threads_[current_];
  const std::uint32_t bit = 1U << current_ % 32;
  join(warp, mask, name, site);
  warp.in[current_ % 32] = in;
  warp.out[current_ % 32] = out;
  // Those that wait and are named by this mask passed the same one, or join would have failed.
  const std::uint32_t here = (warp.at_operation & mask) | bit;
  if (here != mask) {
    me.mask = mask;
    me.operation = name;
    me.site = site;
    warp.at_operation |= bit;
    return wait();
  }
  ++counters_.warp_operations;
  if (function != nullptr) function(mask, warp.in.data(), warp.out.data());
  warp.at_operation &= ~mask;
  warp.ready |= mask & ~bit;
  update(current_ / 32);
}

void Machine::fault(const std::string& what) { throw Fault(describe(current_, what)); }

std::string Machine::describe(std::uint32_t thread, const std::string& what) const {
  std::string text = std::string(launch_.kernel) + ", block " + triple(blockIdx);
  if (thread != kNone) text += ", thread " + triple(coordinates(thread, launch_.block));
  return text + ": " + what;
}

std::string Machine::where(const Site& site) const {
  return std::string(site.file_name()) + ":" + std::to_string(site.line());
}

std::string Machine::deadlock() const {
  std::uint32_t operations = 0;
  const Thread* example = nullptr;
  for (std::uint32_t w = 0; w < warps_used_; ++w) {
    operations += static_cast<std::uint32_t>(std::popcount(warps_[w].at_operation));
    if (warps_[w].at_operation != 0)
      example = &threads_[w * 32 + static_cast<std::uint32_t>(std::countr_zero(warps_[w].at_operation))];
  }
  std::string text = "deadlock: of " + std::to_string(alive_) + " threads " + std::to_string(at_barrier_) +
                     " wait at __syncthreads and " + std::to_string(operations) + " in warp operations";
  if (example != nullptr)
    text += std::string(", such as ") + example->operation + ", " + where(example->site);
  if (at_barrier_ > 0) text += "; the barrier is at " + where(barrier_site_);
  return text;
}

}  // namespace foretoken::cuda::simt

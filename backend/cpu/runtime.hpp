#pragma once
#include <cstddef>
#include <string>

#include "backend/device.hpp"
#include "kernels/cpu/memory.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace foretoken {

/// The CPU: memory is host memory, the stream is a thread team that runs one parallel region per step, and
/// that region plays the part of a captured graph: once launched, nobody decides anything until it ends.
template <>
class Runtime<Cpu> {
 public:
  /// Owns device memory.
  using Memory = cpu::Buffer;
  /// What work learns of its fellows.
  using Team = cpu::Team;

  /// A team of `threads`, the caller included. DeviceError when there is no such team.
  explicit Runtime(int threads);

  /// Members of the team.
  int threads() const { return pool_.size(); }
  /// Zeroed memory. DeviceError, naming `purpose`, when the system has not enough left.
  Memory allocate(std::size_t bytes, const std::string& purpose) const;
  /// Copies between memories of host and device, which are one here.
  void copy(void* target, const void* source, std::size_t bytes) const;
  /// Starts `work(const Team&)` on the other members and returns; `work` must live until `wait` returns.
  template <class Work>
  void launch(Work& work) {
    pool_.launch(work);
  }
  /// Does the caller's part of the launched work and returns when all of it is done: the event after it.
  void wait() { pool_.join(); }
  /// `launch` and `wait` in one.
  template <class Work>
  void run(Work&& work) {
    pool_.run(work);
  }
  /// The team itself, for measurements of what it can do at most.
  cpu::ThreadPool& pool() { return pool_; }

 private:
  cpu::ThreadPool pool_;
};

/// Bytes that the system can still give without swapping; 0 where it does not say.
std::size_t available_memory_bytes();

/// Processors that this process may run on, at least 1: the default size of a team.
int usable_processors();

}  // namespace foretoken

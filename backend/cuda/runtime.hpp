#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "backend/device.hpp"
#include "kernels/cuda/library_product.hpp"
#include "kernels/cuda/types.hpp"
#include "models/device.hpp"

namespace foretoken {

/// What the device is.
struct CudaFacts {
  std::string name;
  /// Driver and runtime versions.
  std::string driver;
  /// Clocks in megahertz, as text.
  std::string clocks;
  int multiprocessors = 1;
  /// 90 for compute capability 9.0.
  int capability = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes_per_multiprocessor = 0;
  std::size_t shared_bytes_per_block = 0;
  /// Whether events tell time: an emulated device has none.
  bool has_clock = true;
};

/// Memory of the device, or pinned memory of the host; owned.
class CudaMemory {
 public:
  /// How to give it back.
  using Release = void (*)(void*);
  CudaMemory() = default;
  /// Takes over `data`.
  CudaMemory(void* data, std::size_t bytes, Release release) : data_(data, release), size_(bytes) {}
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t size() const { return size_; }
  /// The memory as numbers of type T.
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<void, Release> data_{nullptr, nullptr};
  std::size_t size_ = 0;
};

/// A moment in a stream, or recorded work to be run again; owned.
using CudaHandle = std::unique_ptr<void, void (*)(void*)>;

/// A CUDA device, or its emulation: two source files implement these members, one for each plugin. Streams
/// keep the order of what is submitted to them; nothing else is ordered but by events. Every refusal is a
/// DeviceError that names call and reason.
template <>
class Runtime<Cuda> {
 public:
  /// Opens the first device that is visible. `threads` are those of an emulated device; 0: all processors.
  explicit Runtime(int threads);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const CudaFacts& facts() const { return facts_; }
  /// Where steps run.
  cuda::Stream steps() const { return steps_; }
  /// Where swaps run beside them.
  cuda::Stream copies() const { return copies_; }

  /// Device memory of unknown content. When short, the error says how much `purpose` asked and how much is
  /// free.
  CudaMemory allocate(std::size_t bytes, const std::string& purpose) const;
  /// Pinned host memory.
  CudaMemory allocate_host(std::size_t bytes, const std::string& purpose) const;
  /// Copies between device memory and pinned memory, either way, when the stream comes to it.
  void copy(void* target, const void* source, std::size_t bytes, cuda::Stream stream) const;
  /// Zeroes device memory when the stream comes to it.
  void zero(void* target, std::size_t bytes, cuda::Stream stream) const;

  /// An event that nothing has been recorded in.
  CudaHandle make_event() const;
  /// `event` is everything submitted to `stream` so far.
  void record(const CudaHandle& event, cuda::Stream stream) const;
  /// Later work of `stream` waits for `event`.
  void wait(cuda::Stream stream, const CudaHandle& event) const;
  /// The caller waits for `event`.
  void synchronize(const CudaHandle& event) const;
  /// The caller waits for everything in `stream`.
  void synchronize(cuda::Stream stream) const;
  /// Seconds from one event to the other, both passed.
  double seconds_between(const CudaHandle& begin, const CudaHandle& end) const;

  /// Between the two, what is submitted to `stream` is recorded and not run.
  void begin_capture(cuda::Stream stream) const;
  CudaHandle end_capture(cuda::Stream stream) const;
  /// Runs recorded work when the stream comes to it. The recording must live until then.
  void launch(const CudaHandle& recording, cuda::Stream stream) const;

  /// y = x W^T by the vendor's library, or what stands for it.
  void product(const cuda::LibraryProductArgs& args, cuda::Stream stream) const;
  /// Lets the library choose its algorithm for products alike, by timing them; a no-op where there is none.
  void tune(const cuda::LibraryProductArgs& args, cuda::Stream stream) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  CudaFacts facts_;
  cuda::Stream steps_ = nullptr;
  cuda::Stream copies_ = nullptr;
};

}  // namespace foretoken

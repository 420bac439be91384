#pragma once
#include <cstdint>
#include <span>

#include "backend/cuda/runtime.hpp"
#include "backend/step_rows.hpp"
#include "kernels/cuda/decode_plan.hpp"
#include "kernels/cuda/prefill_plan.hpp"

namespace foretoken {

/// How much of each array there is room for.
struct StepCapacity {
  int rows = 0;
  int sequences = 0;
  int sampled = 0;
  int decode_items = 0;
  int prefill_items = 0;
  std::int64_t pages = 0;
  friend bool operator==(const StepCapacity&, const StepCapacity&) = default;
};

/// The arrays of a step as kernels read them; pointers into device memory.
struct StepArrays {
  std::int32_t* tokens = nullptr;
  std::int32_t* positions = nullptr;
  std::int64_t* kv_slots = nullptr;
  std::int32_t* row_begin = nullptr;
  std::int32_t* context = nullptr;
  std::int32_t* page_begin = nullptr;
  std::int32_t* sampled = nullptr;
  /// One number: items of `decode_items` that count.
  std::int32_t* decode_item_count = nullptr;
  cuda::DecodeItem* decode_items = nullptr;
  /// [decoding sequences + 1]: partial results of each.
  std::int32_t* decode_slot_begin = nullptr;
  cuda::PrefillItem* prefill_items = nullptr;
  std::int32_t* pages = nullptr;
};

/// A step's numbers in fixed places: written into pinned memory and sent in one copy, so that recorded work
/// finds the next step's numbers where the last ones were.
class StepMemory {
 public:
  /// DeviceError when memory is short.
  StepMemory(Runtime<Cuda>& runtime, const StepCapacity& capacity);

  const StepCapacity& capacity() const { return capacity_; }
  /// Where the host writes.
  const StepArrays& host() const { return host_; }
  /// Where kernels read, once sent.
  const StepArrays& device() const { return device_; }
  /// Sends everything up to the last of `pages`.
  void send(std::int64_t pages, cuda::Stream stream) const;

 private:
  Runtime<Cuda>* runtime_;
  StepCapacity capacity_;
  CudaMemory pinned_;
  CudaMemory memory_;
  StepArrays host_;
  StepArrays device_;
};

}  // namespace foretoken

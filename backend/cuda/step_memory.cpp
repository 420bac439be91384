#include "backend/cuda/step_memory.hpp"

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// Hands out arrays one after the other, aligned for vector loads; only counts while it has no memory.
class Cutter {
 public:
  explicit Cutter(std::byte* base) : base_(base) {}
  template <class T>
  void cut(T*& array, std::int64_t count) {
    array = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 15) / 16 * 16;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

/// Pages come last: they are many, and only those in use are sent.
StepArrays cut(std::byte* base, const StepCapacity& capacity, std::size_t& bytes) {
  Cutter cutter(base);
  StepArrays arrays;
  cutter.cut(arrays.tokens, capacity.rows);
  cutter.cut(arrays.positions, capacity.rows);
  cutter.cut(arrays.kv_slots, capacity.rows);
  cutter.cut(arrays.row_begin, capacity.sequences + 1);
  cutter.cut(arrays.context, capacity.sequences);
  cutter.cut(arrays.page_begin, capacity.sequences + 1);
  cutter.cut(arrays.sampled, capacity.sampled);
  cutter.cut(arrays.decode_item_count, 1);
  cutter.cut(arrays.decode_items, capacity.decode_items);
  cutter.cut(arrays.decode_slot_begin, capacity.sequences + 1);
  cutter.cut(arrays.prefill_items, capacity.prefill_items);
  cutter.cut(arrays.pages, capacity.pages);
  bytes = cutter.used();
  return arrays;
}

std::size_t bytes_of(const StepCapacity& capacity) {
  std::size_t bytes = 0;
  cut(nullptr, capacity, bytes);
  return bytes;
}

}  // namespace

StepMemory::StepMemory(Runtime<Cuda>& runtime, const StepCapacity& capacity)
    : runtime_(&runtime),
      capacity_(capacity),
      pinned_(runtime.allocate_host(bytes_of(capacity), "the rows of a step")),
      memory_(runtime.allocate(bytes_of(capacity), "the rows of a step")) {
  std::size_t bytes = 0;
  host_ = cut(pinned_.data(), capacity, bytes);
  device_ = cut(memory_.data(), capacity, bytes);
}

void StepMemory::send(std::int64_t pages, cuda::Stream stream) const {
  FT_CHECK(pages <= capacity_.pages, pages, capacity_.pages);
  const auto* end = reinterpret_cast<const std::byte*>(host_.pages + pages);
  runtime_->copy(memory_.data(), pinned_.data(), static_cast<std::size_t>(end - pinned_.data()), stream);
}

}  // namespace foretoken

#include "kernels/cpu/memory.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace foretoken::cpu {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kPageBytes = 4096;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool is_large = bytes >= kHugePageBytes;
  mapped_bytes_ = round_up(bytes, is_large ? kHugePageBytes : kPageBytes);
  // A mapping need not begin on a huge page; one more of them leaves room to move up to the boundary.
  const std::size_t slack = is_large ? kHugePageBytes : 0;
  void* mapped =
      mmap(nullptr, mapped_bytes_ + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* first = static_cast<std::byte*>(mapped);
  if (is_large) {
    const auto address = reinterpret_cast<std::uintptr_t>(first);
    const std::size_t head = round_up(address, kHugePageBytes) - address;
    if (head > 0) munmap(first, head);
    if (slack - head > 0) munmap(first + head + mapped_bytes_, slack - head);
    first += head;
    // Only advice: a system without huge pages is slower, not wrong.
    madvise(first, mapped_bytes_, MADV_HUGEPAGE);
  }
  data_ = first;
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

}  // namespace foretoken::cpu

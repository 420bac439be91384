#include "kernels/cuda/simt/shared_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace foretoken::cuda::simt {
namespace {

// No device has more than 227 KiB a block; guards and alignment need some more.
constexpr std::size_t kCapacity = 1 << 20;
constexpr std::size_t kGuardBytes = 128;
constexpr unsigned char kGuard = 0xa5;
constexpr unsigned char kPoison = 0xff;

void forbid([[maybe_unused]] unsigned char* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(begin, bytes);
#else
  std::memset(begin, kGuard, bytes);
#endif
}

void permit([[maybe_unused]] unsigned char* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

}  // namespace

SharedMemory::SharedMemory() {
  void* mapped =
      mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<unsigned char*>(mapped);
}

SharedMemory::~SharedMemory() {
  permit(memory_, kCapacity);
  munmap(memory_, kCapacity);
}

void SharedMemory::begin_launch(std::size_t dynamic_bytes) {
  permit(memory_, used_);
  pieces_.clear();
  used_ = kGuardBytes;
  forbid(memory_, kGuardBytes);
  add(nullptr, dynamic_bytes, 128);
}

void SharedMemory::begin_block() {
  for (const Piece& piece : pieces_) std::memset(piece.data, kPoison, piece.bytes);
}

bool SharedMemory::guards_are_intact() const {
#if !defined(__SANITIZE_ADDRESS__)
  const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
  for (const Piece& piece : pieces_) {
    const unsigned char* end = piece.data + piece.bytes;
    if (!std::all_of(piece.data - kGuardBytes, piece.data, is_guard) ||
        !std::all_of(end, end + kGuardBytes, is_guard))
      return false;
  }
#endif
  return true;
}

unsigned char* SharedMemory::piece(const void* key, std::size_t bytes, std::size_t alignment) {
  for (const Piece& piece : pieces_)
    if (piece.key == key) return piece.data;
  unsigned char* made = add(key, bytes, alignment);
  std::memset(made, kPoison, bytes);
  return made;
}

bool SharedMemory::contains(const void* address, std::size_t bytes) const {
  const auto* at = static_cast<const unsigned char*>(address);
  return std::any_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
    return at >= piece.data && at + bytes <= piece.data + piece.bytes;
  });
}

std::size_t SharedMemory::used_bytes() const {
  std::size_t total = 0;
  for (const Piece& piece : pieces_) total += piece.bytes;
  return total;
}

unsigned char* SharedMemory::add(const void* key, std::size_t bytes, std::size_t alignment) {
  const std::size_t step = std::max<std::size_t>(alignment, 16);
  const std::size_t begin = (used_ + kGuardBytes + step - 1) / step * step;
  if (begin + bytes + kGuardBytes > kCapacity) throw std::bad_alloc();
  unsigned char* data = memory_ + begin;
  forbid(memory_ + used_, begin - used_);
  permit(data, bytes);
  forbid(data + bytes, kGuardBytes);
  used_ = begin + bytes + kGuardBytes;
  pieces_.push_back({key, data, bytes});
  return data;
}

}  // namespace foretoken::cuda::simt

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken::cpu {

/// Owns zeroed memory, aligned to 64 bytes and advised to use huge pages when it is large enough (2 MiB).
/// Movable, not copyable. Throws std::bad_alloc when the system has none.
class Buffer {
 public:
  /// Owns nothing.
  Buffer() = default;
  /// Owns `bytes` zero bytes; pages are touched by the first use, not here.
  explicit Buffer(std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  /// The first byte, or null when nothing is owned.
  std::byte* data() const { return data_; }
  /// Bytes asked for.
  std::size_t size() const { return bytes_; }
  /// The whole buffer seen as elements of T.
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data_), bytes_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace foretoken::cpu

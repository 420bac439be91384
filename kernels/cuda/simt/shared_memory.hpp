#pragma once
#include <cstddef>
#include <vector>

namespace foretoken::cuda::simt {

/// Shared memory of the blocks that one OS thread runs, one after the other. Each piece has exactly the bytes asked for,
/// between guard bytes: AddressSanitizer reports every access to them, and without it writes are found when the block
/// ends.
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Forgets all pieces and makes one of `dynamic_bytes`.
  void begin_launch(std::size_t dynamic_bytes);
  /// Fills all pieces with 0xff: NaN in every floating-point format.
  void begin_block();
  /// Whether all guard bytes are as they were.
  bool guards_are_intact() const;
  /// The piece of dynamic memory, aligned to 128 bytes.
  unsigned char* dynamic() const { return pieces_.front().data; }
  /// The piece for `key`, made when first asked for.
  unsigned char* piece(const void* key, std::size_t bytes, std::size_t alignment);
  /// Whether `bytes` bytes at `address` lie in one piece.
  bool contains(const void* address, std::size_t bytes) const;
  /// Bytes of all pieces.
  std::size_t used_bytes() const;

 private:
  struct Piece {
    const void* key;
    unsigned char* data;
    std::size_t bytes;
  };
  unsigned char* add(const void* key, std::size_t bytes, std::size_t alignment);

  unsigned char* memory_;
  std::size_t used_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace foretoken::cuda::simt

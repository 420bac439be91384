#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace foretoken {

/// A file in memory with the fuzzer's bytes, for readers that take a path: it costs microseconds and no disk.
class FuzzFile {
 public:
  /// Holds a copy of the bytes until it goes out of scope.
  FuzzFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    while (size > 0) {
      const ssize_t count = ::write(descriptor_, data, size);
      if (count <= 0) std::abort();
      data += count;
      size -= static_cast<std::size_t>(count);
    }
  }
  ~FuzzFile() { ::close(descriptor_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  /// A path under which the bytes can be opened any number of times.
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace foretoken

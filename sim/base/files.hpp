#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

/// Whole content of a file; "-" is standard input; `.gz` content (by magic bytes) is inflated. A missing
/// file, a directory, no permission or truncated gzip is an InputError that names the path and the reason.
std::string read_file(const std::string& path);

/// Reads a text file line by line in constant memory, inflating gzip on the fly. Lines end in \n or \r\n; the
/// last one needs no newline. A line over 64 MiB and NUL bytes are InputErrors with file and line.
class LineReader {
 public:
  explicit LineReader(std::string path);
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  /// The next line without its end; false at the end of the file. The view lives until the next call.
  bool next(std::string_view& line);
  /// Number of the line last returned, from 1.
  std::int64_t line() const;
  const std::string& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes beside the target and renames on `commit`, so that no reader ever sees half a file; gzip when the
/// path ends in `.gz`. A failed write (full disk, no permission) is a DeviceError naming path and reason;
/// without `commit` nothing is left behind, not even by a signal whose handler calls `unlink_drafts`. "-"
/// writes to standard output.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Appends to what will be the file.
  void write(std::string_view text);
  /// Hands what was written so far to the system, so that the draft beside the target can be followed.
  void flush();
  /// Flushes, syncs and renames.
  void commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes the drafts of all AtomicFiles that are not committed: what a signal handler does before it lets
/// the process die. Async-signal-safe.
void unlink_drafts() noexcept;

/// Writes a whole file through AtomicFile.
void write_file(const std::string& path, std::string_view text);

/// SHA-256 (FIPS 180-4), fed in pieces.
class Sha256 {
 public:
  Sha256();
  /// Takes in the next piece.
  void update(std::string_view bytes);
  /// The digest in lower-case hexadecimal; the object is spent afterwards.
  std::string hex();

 private:
  void block(const unsigned char* bytes);
  std::uint32_t state_[8];
  std::uint64_t length_ = 0;
  unsigned char buffer_[64];
};

/// SHA-256 of a text in hexadecimal.
std::string sha256(std::string_view bytes);

}  // namespace foretoken

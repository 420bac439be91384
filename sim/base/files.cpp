#include "sim/base/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/resources.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 20;
constexpr std::size_t kChunkBytes = std::size_t{1} << 16;

std::string shown(const std::string& path) { return path == "-" ? "standard input" : path; }

std::string reason(int error) { return std::strerror(error); }

/// zlib's message without the name that it gives the file, "<fd:3>: ", since it knows a descriptor only.
std::string zlib_reason(std::string_view message) {
  const std::size_t end = message.find(">: ");
  if (message.starts_with("<fd:") && end != std::string_view::npos) message.remove_prefix(end + 3);
  return std::string(message);
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InputError(shown(path) + ": cannot read: " + why);
}

/// Drafts that exist or are about to: a signal handler may neither allocate nor lock, so their paths lie in
/// places of fixed size. A draft that finds no place is written all the same and only outlives a killed run.
struct DraftPlace {
  enum State : int { empty, taken, registered };
  std::atomic<int> state{empty};
  std::array<char, PATH_MAX> path{};
};
std::array<DraftPlace, 32> draft_places;
static_assert(std::atomic<int>::is_always_lock_free);

/// Number of the draft's place, if it found one.
std::optional<std::size_t> register_draft(const std::string& path) {
  if (path.size() >= PATH_MAX) return std::nullopt;
  for (std::size_t i = 0; i < draft_places.size(); ++i) {
    DraftPlace& place = draft_places[i];
    int expected = DraftPlace::empty;
    if (!place.state.compare_exchange_strong(expected, DraftPlace::taken)) continue;
    std::memcpy(place.path.data(), path.c_str(), path.size() + 1);
    place.state.store(DraftPlace::registered);
    return i;
  }
  return std::nullopt;
}

[[noreturn]] void fail_write(const std::string& path, const std::string& why) {
  throw DeviceError((path == "-" ? "standard output" : path) + ": cannot write: " + why);
}

}  // namespace

/// Bytes of a file, inflated where they are gzip (zlib looks at the magic bytes itself), or of a file that
/// ships inside the program ("shipped:" and its path).
class ByteSource {
 public:
  explicit ByteSource(const std::string& path) : path_(path) {
    constexpr std::string_view kShipped = "shipped:";
    if (path.starts_with(kShipped)) {
      const auto content = resource(path.substr(kShipped.size()));
      if (!content) refuse(path, "no such file ships with foretoken");
      shipped_ = *content;
      return;
    }
    const int descriptor = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) refuse(path, reason(errno));
    struct stat status {};
    if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
      ::close(descriptor);
      refuse(path, "it is a directory");
    }
    file_ = ::gzdopen(descriptor, "rb");
    FT_CHECK(file_ != nullptr);
    ::gzbuffer(file_, static_cast<unsigned>(kChunkBytes));
  }
  ~ByteSource() {
    if (file_ != nullptr) ::gzclose_r(file_);
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Up to `size` bytes; 0 at the end of the file. Broken gzip is an InputError.
  std::size_t read(char* target, std::size_t size) {
    if (file_ == nullptr) {
      const std::size_t given = std::min(size, shipped_.size());
      if (given > 0) std::memcpy(target, shipped_.data(), given);
      shipped_.remove_prefix(given);
      return given;
    }
    errno = 0;
    const int count = ::gzread(file_, target, static_cast<unsigned>(size));
    int error = Z_OK;
    const char* message = ::gzerror(file_, &error);
    if (error == Z_ERRNO) refuse(path_, reason(errno));
    if (error == Z_BUF_ERROR) refuse(path_, "the gzip data is truncated");
    if (error != Z_OK || count < 0) refuse(path_, "the gzip data is damaged (" + zlib_reason(message) + ")");
    return static_cast<std::size_t>(count);
  }

 private:
  std::string path_;
  std::string_view shipped_;
  gzFile file_ = nullptr;
};

std::string read_file(const std::string& path) {
  ByteSource source(path);
  std::string content;
  for (;;) {
    const std::size_t held = content.size();
    content.resize(std::max(held * 2, held + kChunkBytes));
    const std::size_t room = std::min<std::size_t>(content.size() - held, INT_MAX / 2);
    const std::size_t count = source.read(content.data() + held, room);
    content.resize(held + count);
    if (count == 0) return content;
  }
}

struct LineReader::State {
  explicit State(std::string path_in) : path(std::move(path_in)), source(path), buffer(kChunkBytes, '\0') {}

  /// Moves the unread rest to the front and reads behind it; false at the end of the file.
  bool refill() {
    std::memmove(buffer.data(), buffer.data() + begin, end - begin);
    end -= begin;
    begin = 0;
    if (end == buffer.size()) buffer.resize(buffer.size() * 2);
    const std::size_t count =
        source.read(buffer.data() + end, std::min(buffer.size() - end, kChunkBytes * 16));
    end += count;
    return count > 0;
  }

  std::string place() const { return shown(path) + ":" + std::to_string(line); }

  std::string path;
  ByteSource source;
  std::string buffer;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t line = 0;
};

LineReader::LineReader(std::string path) : state_(std::make_unique<State>(std::move(path))) {}
LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

bool LineReader::next(std::string_view& line) {
  State& s = *state_;
  std::size_t searched = 0;
  const char* newline = nullptr;
  for (;;) {
    const char* from = s.buffer.data() + s.begin + searched;
    const std::size_t left = s.end - s.begin - searched;
    newline = left == 0 ? nullptr : static_cast<const char*>(std::memchr(from, '\n', left));
    if (newline != nullptr) break;
    searched = s.end - s.begin;
    if (searched > kLineBytesMax) {
      ++s.line;
      throw input_error(s.place(), "lines of at most 64 MiB", "a longer one");
    }
    if (!s.refill()) break;
  }
  if (newline == nullptr && s.begin == s.end) return false;
  ++s.line;
  const char* text = s.buffer.data() + s.begin;
  std::size_t size = newline != nullptr ? static_cast<std::size_t>(newline - text) : s.end - s.begin;
  s.begin += newline != nullptr ? size + 1 : size;
  if (size > 0 && std::memchr(text, '\0', size) != nullptr)
    throw input_error(s.place(), "text", "a NUL byte");
  if (size > 0 && text[size - 1] == '\r') --size;
  line = std::string_view(text, size);
  return true;
}

std::int64_t LineReader::line() const { return state_->line; }

const std::string& LineReader::path() const { return state_->path; }

struct AtomicFile::State {
  explicit State(std::string path_in) : path(std::move(path_in)) {
    if (path == "-") {
      descriptor = ::dup(STDOUT_FILENO);
    } else {
      open_target();
    }
    if (descriptor < 0) fail_write(path, reason(errno));
    if (path.ends_with(".gz")) {
      // zlib writes no time stamp here, so equal content gives equal bytes. The duplicate stays open for
      // fsync.
      packer = ::gzdopen(::dup(descriptor), "wb6");
      FT_CHECK(packer != nullptr);
    }
  }

  ~State() {
    if (packer != nullptr) ::gzclose_w(packer);
    if (descriptor >= 0) ::close(descriptor);
    drop_draft(true);
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Devices and pipes are written in place: renaming a file over /dev/null would replace the device. A link
  /// is followed, so that the file it names is replaced and not the link.
  void open_target() {
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) fail_write(path, "it is a directory");
    if (exists && !S_ISREG(status.st_mode)) {
      descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      return;
    }
    target = path;
    if (char* resolved = ::realpath(path.c_str(), nullptr)) {
      target = resolved;
      std::free(resolved);
    }
    static std::atomic<int> count{0};
    temporary = target + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    // Before it exists, so that no signal can come in between.
    draft = register_draft(temporary);
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) {
      const int error = errno;
      drop_draft(false);
      errno = error;
    }
    if (descriptor >= 0 && exists) static_cast<void>(::fchmod(descriptor, status.st_mode & 07777));
  }

  void drop_draft(bool exists) {
    if (exists && !temporary.empty()) ::unlink(temporary.c_str());
    temporary.clear();
    if (draft) draft_places[*draft].state.store(DraftPlace::empty);
    draft.reset();
  }

  void write_all(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EPIPE && path == "-") return;  // A reader that has left is no error.
      if (count < 0) fail_write(path, reason(errno));
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void flush() {
    if (packer == nullptr) {
      write_all(pending);
    } else {
      errno = 0;
      const int size = static_cast<int>(pending.size());
      if (size > 0 && ::gzwrite(packer, pending.data(), static_cast<unsigned>(size)) != size) {
        fail_write(path, reason(errno));
      }
    }
    pending.clear();
  }

  std::string path;
  std::string target;
  std::string temporary;
  std::string pending;
  std::optional<std::size_t> draft;
  int descriptor = -1;
  gzFile packer = nullptr;
};

AtomicFile::AtomicFile(std::string path) : state_(std::make_unique<State>(std::move(path))) {}
AtomicFile::~AtomicFile() = default;

void AtomicFile::write(std::string_view text) {
  State& s = *state_;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kChunkBytes))) {
    s.pending.append(text.substr(0, kChunkBytes));
    if (s.pending.size() >= kChunkBytes) s.flush();
  }
}

void AtomicFile::flush() { state_->flush(); }

void AtomicFile::commit() {
  State& s = *state_;
  s.flush();
  errno = 0;
  if (s.packer != nullptr) {
    const int result = ::gzclose_w(std::exchange(s.packer, nullptr));
    if (result != Z_OK) fail_write(s.path, reason(errno));
  }
  if (!s.temporary.empty()) {
    if (::fsync(s.descriptor) != 0) fail_write(s.path, reason(errno));
    if (::rename(s.temporary.c_str(), s.target.c_str()) != 0) fail_write(s.path, reason(errno));
    s.drop_draft(false);
  }
  if (::close(std::exchange(s.descriptor, -1)) != 0) fail_write(s.path, reason(errno));
}

void unlink_drafts() noexcept {
  for (DraftPlace& place : draft_places)
    if (place.state.load() == DraftPlace::registered) ::unlink(place.path.data());
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace foretoken

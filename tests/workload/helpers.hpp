#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/workload/trace_reader.hpp"

namespace foretoken::test {

/// All rows of a trace in memory called "t".
inline std::vector<TraceRecord> read_all(std::string text, const TraceReadOptions& options = {}) {
  TraceReader reader = TraceReader::from_text(std::move(text), "t", options);
  std::vector<TraceRecord> records;
  TraceRecord record;
  while (reader.next(record)) records.push_back(record);
  return records;
}

/// The text of the InputError that the call throws; "no error" when it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// What reading the text complains about.
inline std::string fault_of(const std::string& text, const TraceReadOptions& options = {}) {
  return error_of([&] { read_all(text, options); });
}

/// A trace of the data that lies beside the repository on some machines; nothing where it does not.
inline std::optional<std::string> shared_trace(const std::string& name) {
  const auto path = std::filesystem::path(FORETOKEN_SOURCE_DIR) / ".." / "shared" / "data" / "traces" / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.lexically_normal().string();
}

/// A file with this content that is gone at the end of the scope.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, const std::string& content);
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace foretoken::test

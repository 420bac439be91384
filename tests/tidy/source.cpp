#include "tests/tidy/source.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/files.hpp"
#include "sim/base/text.hpp"

namespace foretoken::tidy {
namespace {

namespace fs = std::filesystem;

/// Walks a text character by character and keeps only code; newlines stay, so that line numbers do.
class Blanker {
 public:
  explicit Blanker(const std::string& text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) step();
    return code_;
  }

 private:
  bool sees(std::string_view part) const { return text_.compare(at_, part.size(), part) == 0; }

  void step() {
    if (text_[at_] == '#' && blank_since_newline()) {
      preprocessor();
    } else if (sees("//")) {
      drop_until(text_.find('\n', at_));
    } else if (sees("/*")) {
      const std::size_t end = text_.find("*/", at_ + 2);
      drop_until(end == std::string::npos ? end : end + 2);
    } else if (sees("R\"") && (code_.empty() || !is_word(code_.back()))) {
      raw_string();
    } else if (text_[at_] == '"' || (text_[at_] == '\'' && (code_.empty() || !is_word(code_.back())))) {
      quoted(text_[at_]);
    } else {
      code_ += text_[at_++];
    }
  }

  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  bool blank_since_newline() const {
    const std::size_t newline = code_.find_last_of('\n');
    return code_.find_first_not_of(" \t", newline == std::string::npos ? 0 : newline + 1) ==
           std::string::npos;
  }

  void drop_until(std::size_t end) {
    end = std::min(end, text_.size());
    for (; at_ < end; ++at_) {
      if (text_[at_] == '\n') code_ += '\n';
    }
  }

  void preprocessor() {
    std::size_t end = text_.find('\n', at_);
    while (end != std::string::npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
    drop_until(end);
  }

  void raw_string() {
    const std::size_t open = text_.find('(', at_);
    const std::string close = ")" + text_.substr(at_ + 2, open - at_ - 2) + "\"";
    const std::size_t end = text_.find(close, open);
    code_ += "\"\"";
    drop_until(end == std::string::npos ? end : end + close.size());
  }

  void quoted(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    code_ += quote;
    code_ += quote;
    drop_until(end + 1);
  }

  const std::string& text_;
  std::string code_;
  std::size_t at_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool is_wanted(const std::string& path) {
  constexpr std::array<std::string_view, 8> folders{"sim/", "models/", "kernels/", "backend/",
                                                    "cli/", "plots/",  "tests/",   "cmake/"};
  constexpr std::array<std::string_view, 9> endings{".hpp", ".cpp", ".cu",  ".cuh", ".cmake",
                                                    ".in",  ".md",  ".txt", ".json"};
  constexpr std::array<std::string_view, 3> scripts{"bootstrap", ".ci/run", "tests/callgrind/gate"};
  if (std::find(scripts.begin(), scripts.end(), path) != scripts.end()) return true;
  const bool placed =
      path.find('/') == std::string::npos || path.starts_with("scenarios/") ||
      std::any_of(folders.begin(), folders.end(), [&](auto f) { return path.starts_with(f); });
  return placed && path.find("/corpus/") == std::string::npos &&
         std::any_of(endings.begin(), endings.end(), [&](auto e) { return path.ends_with(e); });
}

bool has_ending(const Source& source, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](auto e) { return source.path.ends_with(e); });
}

}  // namespace

Source make_source(std::string path, const std::string& text) {
  Source source{std::move(path), lines_of(text), {}};
  if (is_code(source)) source.code = lines_of(Blanker(text).run());
  source.code.resize(source.lines.size());
  return source;
}

std::vector<Source> read_tree(const std::string& root) {
  std::vector<std::string> paths;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator();
       ++entry) {
    const std::string path = fs::relative(entry->path(), root).generic_string();
    if (entry->is_directory() && (path == ".git" || path.starts_with("build") || path == "shared")) {
      entry.disable_recursion_pending();
    }
    if (entry->is_regular_file() && is_wanted(path)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Source> sources;
  for (const std::string& path : paths) sources.push_back(make_source(path, read_file(root + "/" + path)));
  return sources;
}

bool is_code(const Source& source) { return has_ending(source, {".hpp", ".cpp", ".cu", ".cuh"}); }

bool is_header(const Source& source) { return has_ending(source, {".hpp", ".cuh"}); }

}  // namespace foretoken::tidy

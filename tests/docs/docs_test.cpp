#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

const std::string kRoot = FORETOKEN_SOURCE_DIR;

/// A line of a fenced code block, without prompt and comment.
struct CommandLine {
  std::string page;
  std::size_t line = 0;
  std::string text;
  std::string comment;
};

std::vector<std::string> lines_of(const std::string& page) {
  std::vector<std::string> lines;
  const std::string text = read_file(kRoot + "/" + page);
  for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  return lines;
}

bool is_fence(const std::string& line) { return std::string(trim(line)).starts_with("```"); }

/// Lines of code blocks that begin with `word`, with or without a prompt.
std::vector<CommandLine> commands_of(const std::string& page, const std::string& word) {
  std::vector<CommandLine> commands;
  bool is_code = false;
  std::size_t number = 0;
  for (const std::string& line : lines_of(page)) {
    ++number;
    if (is_fence(line)) is_code = !is_code;
    std::string text(trim(line));
    if (text.starts_with("$ ")) text.erase(0, 2);
    if (!is_code || !text.starts_with(word)) continue;
    const std::size_t comment = text.find(" #");
    const std::string remark = comment == std::string::npos ? "" : text.substr(comment + 2);
    commands.push_back({page, number, std::string(trim(text.substr(0, comment))), remark});
  }
  return commands;
}

/// The text outside code blocks, with the blocks' lines left empty so that numbers stay.
std::vector<std::string> prose_of(const std::string& page) {
  std::vector<std::string> lines = lines_of(page);
  bool is_code = false;
  for (std::string& line : lines) {
    const bool fence = is_fence(line);
    if (fence) is_code = !is_code;
    if (fence || is_code) line.clear();
  }
  return lines;
}

/// A folder from which the repository's files are reached by the paths that the pages name.
class DocsFolder {
 public:
  DocsFolder() : path_(std::string(FORETOKEN_BUILD_DIR) + "/docs-scratch-" + std::to_string(::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
    for (const char* name : {"scenarios", "models"})
      std::filesystem::create_directory_symlink(kRoot + "/" + name, path_ + "/" + name);
  }
  ~DocsFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  DocsFolder(const DocsFolder&) = delete;
  DocsFolder& operator=(const DocsFolder&) = delete;

  /// Runs `foretoken ARGUMENTS`, as a shell would.
  int run(const std::string& arguments) {
    write_file(path_ + "/line.sh", "cd '" + path_ + "' && exec '" FORETOKEN_PROGRAM "' " + arguments +
                                       " > out.txt 2> error.txt < /dev/null\n");
    const int status = std::system(("bash '" + path_ + "/line.sh'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string out() const { return read_file(path_ + "/out.txt"); }
  std::string error() const { return read_file(path_ + "/error.txt"); }

 private:
  std::string path_;
};

/// Commands that measure this machine for minutes: their dry run checks flags and scenario.
bool takes_long(const std::string& arguments) {
  for (const char* name : {"demo", "live", "calibrate", "validate"})
    if (arguments == name || arguments.starts_with(std::string(name) + " ")) return true;
  return false;
}

/// The code that a line's comment states, 0 where it states none. "Exit code 1 if not" leaves it open.
bool is_code_promised(const CommandLine& command, int code) {
  if (code == 0) return true;
  return command.comment.find("exit code " + std::to_string(code)) != std::string::npos;
}

const std::vector<std::string>& known_verbs() {
  static const std::vector<std::string> verbs = [] {
    // The cases of the script's last `case`, which is what it accepts.
    std::vector<std::string> found;
    bool inside = false;
    for (const std::string& line : lines_of("bootstrap")) {
      if (line.starts_with("case \"$command\" in")) inside = true;
      std::smatch match;
      if (inside && std::regex_search(line, match, std::regex("^  ([a-z]+)\\)"))) found.push_back(match[1]);
    }
    return found;
  }();
  return verbs;
}

/// Whether a name in backticks is that of a file or folder of the tree.
bool is_path_name(const std::string& name) {
  static const std::regex plain("[A-Za-z0-9_.\\-/]+");
  static const std::regex ending(".*\\.(md|json|jsonl|cpp|hpp)");
  if (!std::regex_match(name, plain) || name.starts_with("/") || name.starts_with(".json")) return false;
  return name.find('/') != std::string::npos || std::regex_match(name, ending);
}

}  // namespace

TEST_CASE("every foretoken line of the pages runs as the page says", "[cli]") {
  DocsFolder folder;
  std::size_t count = 0;
  for (const char* page : {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"}) {
    for (const CommandLine& command : commands_of(page, "foretoken ")) {
      ++count;
      std::string arguments = command.text.substr(10);
      if (takes_long(arguments)) arguments += " --dry-run";
      INFO(page << ":" << command.line << ": foretoken " << arguments);
      const int code = folder.run(arguments);
      INFO(folder.error());
      CHECK(is_code_promised(command, code));
      CHECK_FALSE(folder.out().empty());
    }
  }
  CHECK(count >= 5);
}

TEST_CASE("the output that a page shows behind a prompt is what the program prints", "[golden]") {
  DocsFolder folder;
  const std::vector<std::string> lines = lines_of("README.md");
  std::size_t count = 0;
  for (const CommandLine& command : commands_of("README.md", "foretoken ")) {
    if (!std::string(trim(lines[command.line - 1])).starts_with("$ ")) continue;
    ++count;
    INFO("README.md:" << command.line << ": " << command.text);
    folder.run(command.text.substr(10));
    std::string shown;
    for (std::size_t i = command.line; !is_fence(lines[i]) && !lines[i].starts_with("$ "); ++i)
      shown += lines[i] + "\n";
    CHECK(folder.out() == shown);
  }
  CHECK(count >= 1);
}

TEST_CASE("commands named in prose exist", "[cli]") {
  DocsFolder folder;
  std::set<std::string> seen;
  const std::regex name("`foretoken ([a-z]+)[^`]*`");
  for (const char* page : {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"}) {
    for (const std::string& line : prose_of(page)) {
      for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
        if (!seen.insert((*at)[1]).second) continue;
        INFO(page << ": " << (*at)[0]);
        CHECK(folder.run((*at)[1].str() + " --help") == 0);
      }
    }
  }
  CHECK(seen.size() >= 2);
}

TEST_CASE("bootstrap is sound and knows every verb that the pages use", "[cli]") {
  CHECK(std::system(("bash -n '" + kRoot + "/bootstrap'").c_str()) == 0);
  REQUIRE(known_verbs().size() >= 4);
  std::size_t count = 0;
  for (const char* page : {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"}) {
    for (const CommandLine& command : commands_of(page, "./bootstrap")) {
      ++count;
      INFO(page << ":" << command.line << ": " << command.text);
      write_file(std::string(FORETOKEN_BUILD_DIR) + "/docs-line.sh", command.text + "\n");
      CHECK(std::system("bash -n '" FORETOKEN_BUILD_DIR "/docs-line.sh'") == 0);
      std::filesystem::remove(std::string(FORETOKEN_BUILD_DIR) + "/docs-line.sh");
      const std::vector<std::string_view> words = split(command.text, ' ');
      REQUIRE(words.size() >= 2);
      CHECK(std::count(known_verbs().begin(), known_verbs().end(), words[1]) == 1);
    }
    for (const std::string& line : prose_of(page)) {
      const std::regex name("`./bootstrap ([a-z]+)[^`]*`");
      for (std::sregex_iterator at(line.begin(), line.end(), name), end; at != end; ++at) {
        INFO(page << ": " << (*at)[0]);
        CHECK(std::count(known_verbs().begin(), known_verbs().end(), (*at)[1].str()) == 1);
      }
    }
  }
  CHECK(count >= 2);
}

TEST_CASE("paths in the pages exist", "[cli]") {
  // What only a build or somebody else's download brings, and names of formats.
  const std::set<std::string> elsewhere = {"build/release/foretoken"};
  const std::regex quoted("`([^`]+)`");
  std::size_t count = 0;
  for (const char* page : {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "THIRD_PARTY.md"}) {
    for (const std::string& line : prose_of(page)) {
      for (std::sregex_iterator at(line.begin(), line.end(), quoted), end; at != end; ++at) {
        const std::string name = (*at)[1];
        if (!is_path_name(name) || elsewhere.contains(name)) continue;
        ++count;
        INFO(page << ": `" << name << "`");
        CHECK(std::filesystem::exists(kRoot + "/" + name));
      }
    }
  }
  CHECK(count >= 15);
}

TEST_CASE("relative links of the pages lead somewhere", "[cli]") {
  const std::regex link("\\]\\(([^)#]+)(#[^)]*)?\\)");
  for (const auto& entry : std::filesystem::directory_iterator(kRoot)) {
    if (entry.path().extension() != ".md") continue;
    for (const std::string& line : prose_of(entry.path().filename().string())) {
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string target = (*at)[1];
        if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
        INFO(entry.path().filename() << ": " << target);
        CHECK(std::filesystem::exists(kRoot + "/" + target));
      }
    }
  }
}

}  // namespace foretoken

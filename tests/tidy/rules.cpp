#include "tests/tidy/rules.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <string_view>

#include "sim/base/text.hpp"

namespace foretoken::tidy {
namespace {

/// Lines that are neither blank nor only a comment.
std::size_t code_lines(const Source& source) {
  std::size_t count = 0;
  for (const std::string& line : source.lines) {
    const std::size_t begin = line.find_first_not_of(" \t");
    count += begin != std::string::npos && line.compare(begin, 2, "//") != 0;
  }
  return count;
}

constexpr std::size_t kFunctionLinesMax = 60;
constexpr std::size_t kFileLinesMax = 400;
constexpr std::size_t kColumnsMax = 110;
constexpr std::size_t kCoreLinesMax = 2500;
constexpr std::size_t kJsonUnitsMax = 5;

/// A layer, by how its files' paths begin, and what it may include besides itself and the standard library.
struct Layer {
  std::string_view prefix;
  std::vector<std::string_view> allowed;
};

/// The first row whose prefix fits decides.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> table{
      {"sim/base/json.cpp", {"sim/base/", "nlohmann/"}},
      {"sim/base/", {"zlib.h"}},
      {"sim/core/", {"sim/base/check.hpp"}},
      {"sim/fleet/", {"sim/core/", "sim/base/check.hpp"}},
      {"sim/workload/", {"sim/core/", "sim/base/"}},
      {"sim/metrics/", {"sim/core/", "sim/base/"}},
      {"sim/sim_executor", {"sim/core/", "sim/base/check.hpp", "models/"}},
      {"sim/", {"models/"}},
      {"models/", {"sim/base/"}},
      {"kernels/", {"Eigen/", "cuda", "cublas"}},
      {"backend/cuda/", {"backend/", "sim/", "models/", "kernels/", "cuda"}},
      {"backend/", {"sim/", "models/", "kernels/", "Eigen/"}},
      {"plots/", {"sim/base/"}},
      {"cli/main.cpp", {"cli/", "sim/", "models/", "kernels/", "backend/", "plots/", "CLI/"}},
      {"cli/", {"sim/", "models/", "kernels/", "backend/", "plots/"}},
      {"tests/",
       {"sim/", "models/", "kernels/", "backend/", "plots/", "cli/", "catch2/", "Eigen/", "zlib.h"}},
  };
  return table;
}

/// Whether a name in angle brackets is a library's and not the standard's or the system's.
bool is_library(std::string_view name) {
  for (const std::string_view library :
       {"nlohmann/", "Eigen/", "CLI/", "catch2/", "zlib.h", "cuda", "cublas", "fmt/"}) {
    if (name.starts_with(library)) return true;
  }
  return false;
}

/// Headers of the standard library that a compiler we support lacks or cannot compile.
bool is_too_new(std::string_view name) {
  const std::set<std::string_view> names{"format", "expected", "print", "mdspan", "ranges", "generator"};
  return names.contains(name);
}

std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_documented(const Source& source, const Declaration& declaration) {
  const std::string_view above =
      declaration.line_first >= 2 ? trim(source.lines[declaration.line_first - 2]) : std::string_view{};
  if (above.starts_with("///")) return true;
  for (std::size_t line = declaration.line_first; line <= declaration.line_last; ++line) {
    if (source.lines[line - 1].find("///<") != std::string::npos) return true;
  }
  return false;
}

/// Constructors, destructors, operators and overrides say all by their form or are described where they come
/// from; so are members defined outside their class. A getter of one line says no more than its name.
bool explains_itself(const Declaration& declaration) {
  static const std::regex plain(
      "\\boperator\\b|\\boverride\\b|\\bfinal\\b|= *(default|delete)|\\w::~?\\w+ *\\(|\\(\\*");
  static const std::regex getter("\\(\\) const( noexcept)?$");
  if (std::regex_search(declaration.text, plain)) return true;
  if (declaration.class_name.empty()) return false;
  const bool one_line = declaration.has_body && declaration.line_first == declaration.line_last;
  if (one_line && std::regex_search(declaration.text, getter)) return true;
  const std::regex structor("^(inline |constexpr |explicit )*~?" + declaration.class_name + " *\\(");
  return std::regex_search(declaration.text, structor);
}

std::string short_name(const Declaration& declaration) { return declaration.text.substr(0, 60); }

struct Word {
  std::regex pattern;
  const char* why;
  bool in_code_only;
};

const std::vector<Word>& words() {
  static const std::vector<Word> list{
      {std::regex("std::[a-z_]+_distribution\\b"), "std:: distributions differ between libraries", true},
      {std::regex("std::shuffle\\b|std::random_shuffle\\b"), "std::shuffle differs between libraries", true},
      {std::regex("\\b(std::)?s?rand\\("), "rand() has hidden state", true},
      {std::regex("\\brandom_device\\b"), "a run must follow from its seed", true},
      {std::regex("\\b(TODO|FIXME|XXX)\\b"), "unfinished work belongs in an issue", false},
      {std::regex("(^|[^A-Za-z0-9_.])/work(/|\\b)"), "a path of one machine", false},
      {std::regex("\\bhelper session\\b|\\bAI session\\b|\\bthis session\\b"),
       "the project speaks of itself alone", false},
  };
  return list;
}

std::vector<std::string> included(const Source& source) {
  static const std::regex include("^ *# *include *[<\"]([^>\"]+)[>\"]");
  std::vector<std::string> names;
  std::smatch match;
  for (const std::string& line : source.lines) {
    names.push_back(std::regex_search(line, match, include) ? match[1].str() : "");
  }
  return names;
}

}  // namespace

std::vector<Finding> check_includes(const Source& source) {
  std::vector<Finding> findings;
  if (!is_code(source)) return findings;
  const auto& table = layers();
  const auto layer = std::find_if(table.begin(), table.end(),
                                  [&](const Layer& row) { return source.path.starts_with(row.prefix); });
  if (layer == table.end()) return {{source.path, 1, "lies in no layer of the include table"}};
  const auto names = included(source);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (name.empty()) continue;
    const bool in_quotes = source.lines[i].find('"') != std::string::npos;
    bool allowed = in_quotes ? name.starts_with(layer->prefix) : !is_library(name) && !is_too_new(name);
    for (const std::string_view prefix : layer->allowed) allowed = allowed || name.starts_with(prefix);
    if (!allowed) findings.push_back({source.path, i + 1, "may not include " + name});
  }
  if (is_header(source) && (source.lines.empty() || source.lines[0] != "#pragma once")) {
    findings.push_back({source.path, 1, "a header begins with #pragma once"});
  }
  return findings;
}

std::vector<Finding> check_lengths(const Source& source) {
  std::vector<Finding> findings;
  if (!is_code(source)) return findings;
  if (source.lines.size() > kFileLinesMax) {
    findings.push_back({source.path, 1, "file of " + std::to_string(source.lines.size()) + " lines"});
  }
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    const std::size_t width = columns(source.lines[i]);
    if (width > kColumnsMax)
      findings.push_back({source.path, i + 1, "line of " + std::to_string(width) + " columns"});
  }
  if (source.path.starts_with("kernels/cuda/")) return findings;
  for (const Declaration& declaration : declarations(source)) {
    const std::size_t length = declaration.line_last - declaration.line_first + 1;
    if (!declaration.has_body || !declaration.is_function || length <= kFunctionLinesMax) continue;
    findings.push_back({source.path, declaration.line_first,
                        "function of " + std::to_string(length) + " lines: " + short_name(declaration)});
  }
  return findings;
}

std::vector<Finding> check_docstrings(const Source& source) {
  std::vector<Finding> findings;
  if (!is_header(source)) return findings;
  auto all = declarations(source);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.line_first < b.line_first; });
  // Lines that a sentence covers: a block of declarations directly below one shares it.
  std::set<std::size_t> covered;
  for (const Declaration& declaration : all) {
    const bool documented =
        is_documented(source, declaration) || covered.contains(declaration.line_first - 1);
    if (documented && !declaration.is_type) {
      for (std::size_t line = declaration.line_first; line <= declaration.line_last; ++line)
        covered.insert(line);
    }
    const bool wanted = declaration.is_public && (declaration.is_type || declaration.is_function);
    if (!wanted || documented || explains_itself(declaration)) continue;
    findings.push_back({source.path, declaration.line_first, "no /// sentence: " + short_name(declaration)});
  }
  return findings;
}

std::vector<Finding> check_words(const Source& source) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < source.lines.size(); ++i) {
    for (const Word& word : words()) {
      if (word.in_code_only && !is_code(source)) continue;
      const std::string& line = word.in_code_only ? source.code[i] : source.lines[i];
      if (std::regex_search(line, word.pattern)) findings.push_back({source.path, i + 1, word.why});
    }
  }
  return findings;
}

std::vector<Finding> check_tree(const std::vector<Source>& tree) {
  std::vector<Finding> findings;
  std::size_t json_units = 0;
  std::size_t command_units = 0;
  std::size_t core_lines = 0;
  for (const Source& source : tree) {
    if (!is_code(source)) continue;
    // Sentences and blank lines are free: what must stay small is what has to be understood.
    if (source.path.starts_with("sim/core/")) core_lines += code_lines(source);
    for (const std::string& name : included(source)) {
      const bool is_json = name.starts_with("nlohmann/");
      const bool is_command = name.starts_with("CLI/");
      json_units += is_json ? 1 : 0;
      command_units += is_command ? 1 : 0;
      if (is_header(source) && (is_json || is_command))
        findings.push_back({source.path, 1, "a giant in a header"});
    }
  }
  if (json_units > kJsonUnitsMax) findings.push_back({"sim/base/json.cpp", 1, "json.hpp in too many units"});
  if (command_units > 1) findings.push_back({"cli/main.cpp", 1, "CLI11 in more than one unit"});
  if (core_lines > kCoreLinesMax) {
    findings.push_back({"sim/core", 1, "the core has " + std::to_string(core_lines) + " lines of code"});
  }
  return findings;
}

std::vector<Finding> check_paths(const Source& page, const std::vector<Source>& tree) {
  static const std::regex path(
      "`((?:sim|models|kernels|backend|cli|plots|scenarios|tests|cmake)/[A-Za-z0-9_./-]*)`");
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < page.lines.size(); ++i) {
    const std::string& line = page.lines[i];
    for (auto match = std::sregex_iterator(line.begin(), line.end(), path); match != std::sregex_iterator();
         ++match) {
      // A name without an ending stands for a folder or for the pair of header and source.
      const std::string named = (*match)[1].str();
      const bool found = std::any_of(tree.begin(), tree.end(), [&](const Source& source) {
        return source.path == named || source.path == named + ".hpp" || source.path == named + ".cpp" ||
               source.path.starts_with(named.ends_with("/") ? named : named + "/");
      });
      if (!found) findings.push_back({page.path, i + 1, "names " + named + ", which is not there"});
    }
  }
  return findings;
}

}  // namespace foretoken::tidy

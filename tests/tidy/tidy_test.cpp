#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tidy/rules.hpp"

using namespace foretoken::tidy;

namespace {

const std::vector<Source>& tree() {
  static const std::vector<Source> sources = read_tree(FORETOKEN_SOURCE_DIR);
  return sources;
}

/// One failure with a line per finding, so that the list can be worked through.
void require_none(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.path + ":" + std::to_string(finding.line) + ": " + finding.what + "\n";
  }
  INFO(text);
  CHECK(findings.empty());
}

/// All findings of one rule over the sources that `wanted` picks.
template <class Rule, class Wanted>
std::vector<Finding> findings_of(const Rule& rule, const Wanted& wanted) {
  std::vector<Finding> all;
  for (const Source& source : tree()) {
    if (!wanted(source)) continue;
    const std::vector<Finding> some = rule(source);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

bool is_any(const Source&) { return true; }
bool is_ours_to_document(const Source& source) { return !source.path.starts_with("tests/"); }
bool is_page(const Source& source) { return source.path.ends_with(".md"); }
/// The banned words stand in the rules and in their seeded faults; there they are data.
bool is_not_about_words(const Source& source) { return !source.path.starts_with("tests/tidy/"); }

}  // namespace

TEST_CASE("every include is one that the table of layers allows", "[tidy]") {
  require_none(findings_of(check_includes, is_any));
}

TEST_CASE("functions, files and lines are short", "[tidy]") {
  require_none(findings_of(check_lengths, is_any));
}

TEST_CASE("every public declaration has its sentence", "[tidy]") {
  require_none(findings_of(check_docstrings, is_ours_to_document));
}

TEST_CASE("no banned word occurs", "[tidy]") { require_none(findings_of(check_words, is_not_about_words)); }

TEST_CASE("giants stay in few units and the core stays small", "[tidy]") { require_none(check_tree(tree())); }

TEST_CASE("paths that the pages name exist", "[tidy]") {
  require_none(findings_of([](const Source& page) { return check_paths(page, tree()); }, is_page));
}

TEST_CASE("the tree holds what a reader expects at its top", "[tidy]") {
  for (const char* name : {"CMakeLists.txt", "THIRD_PARTY.md", "CHANGELOG.md", "bootstrap", ".ci/run"}) {
    const bool found =
        std::any_of(tree().begin(), tree().end(), [&](const Source& s) { return s.path == name; });
    CHECK(found);
  }
}

#include <algorithm>
#include <regex>

#include "sim/base/text.hpp"
#include "tests/tidy/source.hpp"

namespace foretoken::tidy {
namespace {

enum class Kind { outer, type, body };

struct Scope {
  Kind kind;
  bool is_public;
  std::string name;
  Declaration opened;
};

/// Removes template heads, attributes and alignments, whose words and brackets would mislead the
/// classification.
std::string plain(std::string text) {
  for (std::size_t at = text.find("template"); at != std::string::npos; at = text.find("template")) {
    std::size_t end = text.find('<', at);
    if (end == std::string::npos) break;
    int depth = 0;
    do {
      depth += text[end] == '<' ? 1 : text[end] == '>' ? -1 : 0;
      ++end;
    } while (depth > 0 && end < text.size());
    text.erase(at, end - at);
  }
  text = std::regex_replace(
      text, std::regex("\\[\\[[^\\]]*\\]\\]|alignas *\\([^)]*\\)|__[a-z_]+__ *(\\([^)]*\\))*"), "");
  return std::string(trim(text));
}

class Walker {
 public:
  explicit Walker(const Source& source) : source_(source) { scopes_.push_back({Kind::outer, true, "", {}}); }

  std::vector<Declaration> run() {
    for (std::size_t i = 0; i < source_.code.size(); ++i) {
      line_ = i + 1;
      for (const char c : source_.code[i]) step(c);
      if (!text_.empty()) text_ += ' ';
    }
    return std::move(found_);
  }

 private:
  void step(char c) {
    if (c == '{') return open();
    if (c == '}') return close();
    if (scopes_.back().kind == Kind::body) return;
    if (c == '(') ++parentheses_;
    if (c == ')') --parentheses_;
    if (c == ';' && parentheses_ == 0) {
      record(describe(false));
      text_.clear();
      return;
    }
    if (c == ':' && scopes_.back().kind == Kind::type) {
      const std::string word(trim(text_));
      if (word == "public" || word == "private" || word == "protected") {
        scopes_.back().is_public = word == "public" && outside_is_public();
        text_.clear();
        return;
      }
    }
    if (text_.empty()) {
      if (c == ' ' || c == '\t') return;
      line_first_ = line_;
    }
    text_ += c;
  }

  bool outside_is_public() const { return scopes_.size() < 2 || scopes_[scopes_.size() - 2].is_public; }

  Declaration describe(bool has_body) const {
    static const std::regex type("^(typedef )?(class|struct|union|enum)\\b");
    static const std::regex no_function("^(using|typedef|static_assert|namespace|extern \"\" *$|friend)\\b");
    const std::string text = plain(text_);
    const bool is_type = std::regex_search(text, type) && text.find('(') == std::string::npos;
    const std::size_t parenthesis = text.find('(');
    const std::size_t equals = std::min(text.find(" = "), text.find('{'));
    const bool is_function = !is_type && parenthesis != std::string::npos &&
                             !std::regex_search(text, no_function) &&
                             (equals > parenthesis || text.find("operator") != std::string::npos);
    return {text,
            line_first_,
            line_,
            has_body,
            is_function,
            is_type && has_body,
            scopes_.back().is_public,
            scopes_.back().kind == Kind::type ? scopes_.back().name : ""};
  }

  void record(const Declaration& declaration) {
    if (!declaration.text.empty()) found_.push_back(declaration);
  }

  void open() {
    if (scopes_.back().kind == Kind::body || parentheses_ > 0) {
      scopes_.push_back({Kind::body, false, "", {}});
      return;
    }
    const Declaration declaration = describe(true);
    static const std::regex outer("^(inline )?namespace\\b|^extern \"\" *$");
    static const std::regex name("^(?:class|struct|union|enum)(?: +class| +struct)? +([A-Za-z_0-9]+)");
    std::smatch match;
    if (std::regex_search(declaration.text, outer)) {
      const bool hidden =
          declaration.text == "namespace" || declaration.text.find("detail") != std::string::npos;
      scopes_.push_back({Kind::outer, scopes_.back().is_public && !hidden, "", {}});
    } else if (declaration.is_type && !declaration.text.starts_with("enum")) {
      const bool named = std::regex_search(declaration.text, match, name);
      const bool open_by_default = !declaration.text.starts_with("class");
      scopes_.push_back({Kind::type, scopes_.back().is_public && open_by_default, named ? match[1].str() : "",
                         declaration});
    } else {
      scopes_.push_back({Kind::body, false, "", declaration});
    }
    text_.clear();
  }

  void close() {
    if (scopes_.size() < 2) return;
    Declaration opened = scopes_.back().opened;
    const bool was_body = scopes_.back().kind == Kind::body;
    scopes_.pop_back();
    if (scopes_.back().kind == Kind::body || parentheses_ > 0) return;
    opened.line_last = line_;
    record(opened);
    if (!was_body) text_.clear();
  }

  const Source& source_;
  std::vector<Scope> scopes_;
  std::vector<Declaration> found_;
  std::string text_;
  std::size_t line_ = 0;
  std::size_t line_first_ = 0;
  int parentheses_ = 0;
};

}  // namespace

std::vector<Declaration> declarations(const Source& source) { return Walker(source).run(); }

}  // namespace foretoken::tidy

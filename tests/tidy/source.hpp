#pragma once
#include <string>
#include <vector>

namespace foretoken::tidy {

/// One file as the rules see it: the text as written, and the code alone.
struct Source {
  std::string path;                ///< from the repository root
  std::vector<std::string> lines;  ///< as written
  std::vector<std::string>
      code;  ///< comments, text in quotes and preprocessor lines blanked; same line numbers
};

/// A broken rule: where, and what about it.
struct Finding {
  std::string path;
  std::size_t line;
  std::string what;
};

/// Splits a text into lines and blanks what is not code.
Source make_source(std::string path, const std::string& text);

/// Every source and text file of the repository at `root` (build folders left out), sorted by path.
std::vector<Source> read_tree(const std::string& root);

/// Whether this is C++ or CUDA, by its ending.
bool is_code(const Source& source);

/// Whether this is a header, by its ending.
bool is_header(const Source& source);

/// One stretch of code that ends in `;` or opens a brace, at namespace or class level.
struct Declaration {
  std::string text;        ///< joined by blanks, without template heads and attributes
  std::size_t line_first;  ///< where it begins, from 1
  std::size_t line_last;   ///< where it ends: the closing brace where it has a body
  bool has_body;           ///< whether a brace follows
  bool is_function;        ///< a function, declared or defined
  bool is_type;            ///< the definition of a class, struct, union or enum
  bool is_public;          ///< reachable from outside: not in an anonymous or `detail` namespace, not private
  std::string class_name;  ///< the class it is a member of; empty at namespace level
};

/// All declarations at namespace and class level, in order of their end.
std::vector<Declaration> declarations(const Source& source);

}  // namespace foretoken::tidy

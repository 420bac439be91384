#pragma once
#include <vector>

#include "tests/tidy/source.hpp"

namespace foretoken::tidy {

/// Includes that the table of layers does not allow.
std::vector<Finding> check_includes(const Source& source);
/// Functions over 60 lines (device kernels exempt), files over 400, lines over 110 columns.
std::vector<Finding> check_lengths(const Source& source);
/// Public types and functions in headers without a `///` sentence. One sentence covers the lines directly
/// below it.
std::vector<Finding> check_docstrings(const Source& source);
/// Words that break determinism, say that work is unfinished, or speak of anything but the project.
std::vector<Finding> check_words(const Source& source);
/// Header-only giants in more translation units than they may be in, and the size of the serving core.
std::vector<Finding> check_tree(const std::vector<Source>& tree);
/// Paths that a page names and that are not there; `exists` tells.
std::vector<Finding> check_paths(const Source& page, const std::vector<Source>& tree);

}  // namespace foretoken::tidy

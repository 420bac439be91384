#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/json.hpp"

namespace foretoken {

/// A column of a table.
struct TableColumn {
  std::string title;
  bool is_number = false;  ///< Aligned at the right.
  int rank = 0;  ///< When the table is too wide, columns of the highest rank are dropped first; 0 stays.
};

/// Rows of text, printed as a table for people, Markdown or CSV. Cells are never wrapped: where the width is
/// short, whole columns are left out and then the last column is cut.
class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns);
  /// As many cells as columns.
  void add(std::vector<std::string> cells);
  /// "table", "md" or "csv".
  std::string render(std::string_view form, std::int32_t columns_max) const;

 private:
  std::string plain(std::int32_t columns_max) const;
  std::string markdown() const;
  std::string csv() const;
  std::vector<std::size_t> widths() const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace foretoken

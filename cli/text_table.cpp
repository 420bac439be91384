#include "cli/text_table.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// Characters that a terminal shows: bytes that do not continue a UTF-8 sequence.
std::size_t shown_width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool at_right) {
  const std::string blanks(width - std::min(width, shown_width(text)), ' ');
  return at_right ? blanks + text : text + blanks;
}

/// The text cut to a width, with a mark where something is missing.
std::string cut(const std::string& text, std::size_t width) {
  if (shown_width(text) <= width) return text;
  std::string kept;
  std::size_t shown = 0;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 && ++shown >= width) break;
    kept += c;
  }
  return kept + "~";
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

TextTable::TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
  FT_CHECK(cells.size() == columns_.size(), cells.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::widths() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = shown_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, shown_width(row[i]));
    widths.push_back(width);
  }
  return widths;
}

std::string TextTable::render(std::string_view form, std::int32_t columns_max) const {
  if (form == "md") return markdown();
  return form == "csv" ? csv() : plain(columns_max);
}

std::string TextTable::plain(std::int32_t columns_max) const {
  const std::vector<std::size_t> all = widths();
  const auto room = static_cast<std::size_t>(columns_max);
  std::vector<std::size_t> kept(columns_.size());
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t i : kept) sum += all[i] + 2;
    return sum - 2;
  };
  while (kept.size() > 1 && total() > room) {
    const auto worst = std::max_element(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) {
      return columns_[a].rank <= columns_[b].rank;
    });
    if (columns_[*worst].rank == 0) break;
    kept.erase(worst);
  }
  const std::size_t excess = total() > room ? total() - room : 0;
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (const std::size_t i : kept) {
      std::size_t width = all[i];
      if (i == kept.back()) width = std::max<std::size_t>(width - std::min(width, excess), 1);
      line += padded(cut(cell_of(i), width), width, columns_[i].is_number) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return text;
}

std::string TextTable::markdown() const {
  std::string text = "|";
  for (const TableColumn& column : columns_) text += " " + column.title + " |";
  text += "\n|";
  for (const TableColumn& column : columns_) text += column.is_number ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : rows_) {
    text += "|";
    for (const std::string& cell : row) text += " " + cell + " |";
    text += "\n";
  }
  return text;
}

std::string TextTable::csv() const {
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    for (std::size_t i = 0; i < columns_.size(); ++i) text += (i > 0 ? "," : "") + csv_cell(cell_of(i));
    text += "\n";
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return text;
}

}  // namespace foretoken

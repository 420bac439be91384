#pragma once
#include <string>
#include <vector>

namespace foretoken {

/// A file that no command may take, and what the message must say of it besides its name.
struct BadFile {
  std::string name;
  std::string content;
  /// Where: a line, a line with column, or a JSON pointer behind it.
  std::string place;
  /// What was expected, what was found, or both.
  std::vector<std::string> says;
};

/// Traces in plain CSV.
std::vector<BadFile> bad_csv_files();
/// Traces in canonical JSONL.
std::vector<BadFile> bad_canonical_files();
/// Scenarios.
std::vector<BadFile> bad_scenario_files();

}  // namespace foretoken

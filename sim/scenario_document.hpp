#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

/// A value that takes the place of one in the file.
struct Override {
  std::string origin;  ///< Who says so, for errors: "--set engine.max_num_seqs=64", "FORETOKEN_SEED".
  std::string path;    ///< Dotted, or a JSON pointer when it begins with '/'.
  Json value;          ///< The new value.
};

/// `path=value`, where the value is JSON if it can be read as such, else text. A UsageError without a path or
/// '='.
Override parse_override(std::string_view text);
/// The same from the environment: `FORETOKEN_ENGINE__MAX_NUM_SEQS=64` is `engine.max_num_seqs=64`. Variables
/// whose first word is no section of a scenario belong to somebody else. `environment` holds entries
/// "NAME=value".
std::vector<Override> environment_overrides(const std::vector<std::string>& environment);
/// Puts the value in its place, making objects on the way. Elements of arrays go by number. A UsageError
/// where the path leads through a value that holds no others.
void apply_override(Json& document, const Override& change);

/// A scenario file before it is resolved.
struct ScenarioDocument {
  std::string name;    ///< For errors.
  std::string folder;  ///< What relative paths in it are relative to.
  Json content;        ///< As written.
};

/// Reads a scenario by path ("-": standard input) or, for a plain word, by the name of a shipped one. The
/// InputError for an unknown name lists the shipped ones.
ScenarioDocument read_document(const std::string& name_or_path);
/// Names of the shipped scenarios, sorted.
std::vector<std::string> shipped_scenarios();

/// The scenario of a document with overrides, later ones winning. An error at an overridden place names its
/// origin.
Scenario resolve(const ScenarioDocument& document, const std::vector<Override>& overrides);

}  // namespace foretoken

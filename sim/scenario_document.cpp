#include "sim/scenario_document.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kFolder = "scenarios/";
constexpr std::string_view kVariablePrefix = "FORETOKEN_";

/// Forgets where in the file a value stood: it comes from elsewhere.
void forget_lines(Json& value) {
  value.set_line(0);
  if (value.is_array()) {
    for (Json& element : value.as_array()) forget_lines(element);
  } else if (value.is_object()) {
    for (auto& [key, member] : value.as_object()) forget_lines(member);
  }
}

Json value_of(std::string_view text) {
  Json value;
  try {
    value = Json::parse(text, "value");
  } catch (const InputError&) {
    value = Json(text);
  }
  forget_lines(value);
  return value;
}

/// Parts of a path: dotted, or a JSON pointer (RFC 6901).
std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts;
  if (!path.starts_with('/')) {
    for (const std::string_view part : split(path, '.')) parts.emplace_back(part);
    return parts;
  }
  for (const std::string_view part : split(path.substr(1), '/')) {
    std::string& text = parts.emplace_back();
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool is_escape =
          part[i] == '~' && i + 1 < part.size() && (part[i + 1] == '0' || part[i + 1] == '1');
      text += !is_escape ? part[i] : part[++i] == '0' ? '~' : '/';
    }
  }
  return parts;
}

std::string pointer_of(std::string_view path) {
  if (path.starts_with('/')) return std::string(path);
  std::string pointer = "/" + std::string(path);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return pointer;
}

Json& member_of(Json& holder, const std::string& part, const Override& change) {
  if (holder.is_array()) {
    const auto number = parse_int64(part);
    const auto count = static_cast<std::int64_t>(holder.as_array().size());
    if (!number || *number < 0 || *number >= count)
      throw UsageError(change.origin + ": expected the number of an element below " + std::to_string(count) +
                       ", found \"" + part + "\"");
    return holder.as_array()[static_cast<std::size_t>(*number)];
  }
  if (!holder.is_object() && !holder.is_null())
    throw UsageError(change.origin + ": expected an object before \"" + part + "\", found " +
                     holder.describe());
  return holder[part];
}

/// Whether an error is about an overridden place.
bool is_about(std::string_view error, const Override& change) {
  const std::string pointer = ": " + pointer_of(change.path);
  const std::size_t at = error.find(pointer);
  if (at == std::string_view::npos) return false;
  const std::size_t end = at + pointer.size();
  return end < error.size() && (error[end] == ':' || error[end] == '/');
}

}  // namespace

Override parse_override(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw UsageError("--set: expected path=value, found \"" + std::string(text) + "\"");
  return {"--set " + std::string(text), std::string(text.substr(0, equals)),
          value_of(text.substr(equals + 1))};
}

std::vector<Override> environment_overrides(const std::vector<std::string>& environment) {
  std::vector<std::string> known = {"deployment", "cost", "engine", "memory", "workload", "slo", "metrics"};
  for (const Field& field : scenario_fields("")) known.emplace_back(field.name);
  std::vector<Override> overrides;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos || !entry.starts_with(kVariablePrefix)) continue;
    std::string path = entry.substr(kVariablePrefix.size(), equals - kVariablePrefix.size());
    std::transform(path.begin(), path.end(), path.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (std::size_t at = path.find("__"); at != std::string::npos; at = path.find("__", at))
      path.replace(at, 2, ".");
    const std::string section = path.substr(0, path.find('.'));
    if (std::find(known.begin(), known.end(), section) == known.end()) continue;
    overrides.push_back({entry.substr(0, equals), path, value_of(entry.substr(equals + 1))});
  }
  // The order of the environment is nobody's choice.
  std::sort(overrides.begin(), overrides.end(),
            [](const Override& a, const Override& b) { return a.path < b.path; });
  return overrides;
}

void apply_override(Json& document, const Override& change) {
  Json* holder = &document;
  for (const std::string& part : path_parts(change.path)) {
    if (part.empty()) throw UsageError(change.origin + ": expected a path without empty parts");
    holder = &member_of(*holder, part, change);
  }
  *holder = change.value;
}

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> names;
  for (const std::string& path : resource_paths(kFolder)) {
    const std::string name = path.substr(kFolder.size());
    if (name.find('/') != std::string::npos || !name.ends_with(".json")) continue;
    names.push_back(name.substr(0, name.size() - 5));
  }
  return names;
}

ScenarioDocument read_document(const std::string& name_or_path) {
  const std::filesystem::path path(name_or_path);
  const bool is_word = name_or_path != "-" && !path.has_parent_path() && path.extension().empty();
  if (!is_word) {
    const std::string name = name_or_path == "-" ? "standard input" : name_or_path;
    return {name, path.parent_path().string(), Json::parse_file(name_or_path, true)};
  }
  const std::string shipped = std::string(kFolder) + name_or_path + ".json";
  if (const auto text = resource(shipped))
    return {shipped, "shipped:scenarios", Json::parse(*text, shipped, true)};
  const std::vector<std::string> names = shipped_scenarios();
  std::string expected = "a path, or one of";
  for (const std::string& name : names) expected += (&name == &names.front() ? " " : ", ") + name;
  const std::string near = nearest(name_or_path, names);
  throw input_error("scenario", expected,
                    "\"" + name_or_path + "\"" + (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
}

Scenario resolve(const ScenarioDocument& document, const std::vector<Override>& overrides) {
  Json content = document.content;
  for (const Override& change : overrides) apply_override(content, change);
  try {
    return read_scenario(content, document.name, document.folder);
  } catch (const UsageError&) {
    throw;
  } catch (const InputError& error) {
    for (auto change = overrides.rbegin(); change != overrides.rend(); ++change) {
      if (is_about(error.what(), *change))
        throw InputError(std::string(error.what()) + " (from " + change->origin + ")");
    }
    throw;
  }
}

}  // namespace foretoken

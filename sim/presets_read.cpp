#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/presets.hpp"
#include "sim/scenario_policy.hpp"

namespace foretoken {
namespace {

const Preset& read_preset(JsonReader& reader) {
  const std::string name = reader.string("preset", "vllm-v1");
  if (const Preset* preset = find_preset(name)) return *preset;
  std::vector<std::string> names;
  std::string expected = "one of ";
  for (const Preset& preset : presets()) {
    expected.append(names.empty() ? "\"" : ", \"").append(preset.name).append("\"");
    names.emplace_back(preset.name);
  }
  std::string found = "\"" + name + "\"";
  if (const std::string near = nearest(name, names); !near.empty())
    found += " (did you mean \"" + near + "\"?)";
  reader.fail("preset", expected, found);
}

bool has_parameter(const Preset& preset, std::string_view name) {
  for (const EngineParameter* parameter : preset.parameters) {
    if (parameter->field.name == name) return true;
  }
  return false;
}

/// A parameter of another engine is not misspelt, so that a nearest name would mislead.
void refuse_foreign(const JsonReader& reader, const Preset& preset) {
  for (const Preset& other : presets()) {
    for (const EngineParameter* parameter : other.parameters) {
      const std::string_view name = parameter->field.name;
      if (reader.has(name) && !has_parameter(preset, name))
        reader.fail(name, "a parameter of " + std::string(preset.name),
                    "a parameter of " + std::string(other.name));
    }
  }
}

}  // namespace

const Preset* find_preset(std::string_view name) {
  for (const Preset& preset : presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

EngineConfig read_engine(JsonReader reader, const EngineContext& context) {
  EngineConfig engine;
  engine.preset = &read_preset(reader);
  refuse_foreign(reader, *engine.preset);
  engine.settings.policy = engine.preset->policy();
  engine.parameters = Json::object();
  for (const EngineParameter* parameter : engine.preset->parameters) {
    const Json value = read_field(reader, parameter->field);
    engine.parameters.set(parameter->field.name, parameter->apply(engine.settings, context, value));
  }
  JsonReader overrides = reader.child("sched");
  for (const PolicyField& row : policy_fields())
    if (overrides.has(row.field.name)) engine.overridden.emplace_back(row.field.name);
  read_policy(overrides, engine.settings.policy);
  reader.finish();
  return engine;
}

std::string written_key(const EngineConfig& engine, std::string_view policy_field) {
  const std::vector<std::string>& own = engine.overridden;
  if (std::find(own.begin(), own.end(), policy_field) == own.end()) {
    for (const EngineParameter* parameter : engine.preset->parameters)
      if (parameter->policy_field == policy_field) return std::string(parameter->field.name);
  }
  return "sched." + std::string(policy_field);
}

Json engine_to_json(const EngineConfig& engine) {
  FT_CHECK(engine.preset != nullptr);
  Json json = Json::object({{"preset", engine.preset->name}});
  for (const auto& [name, value] : engine.parameters.as_object()) json.set(name, value);
  json.set("sched", policy_to_json(engine.settings.policy));
  return json;
}

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/core/policy.hpp"
#include "sim/scenario_field.hpp"

namespace foretoken {

/// What the defaults of some parameters depend on, as in the original engines.
struct EngineContext {
  std::int32_t model_tokens_max = 0;  ///< Longest sequence of the model.
  double device_memory_bytes = 0;     ///< Memory of one device; 0 where unknown.
  std::string device_name;            ///< As on its sheet.
};

/// The settings that an engine's parameters decide.
struct EngineSettings {
  Policy policy;                      ///< The six slots.
  std::int32_t model_tokens_max = 0;  ///< Longest sequence served.
  double memory_utilization = 0.9;    ///< Share of device memory that the engine may use.
  double swap_gib = 0;                ///< Host memory for swapped sequences.
  std::int64_t kv_blocks = 0;         ///< Blocks of the KV pool where stated; 0: what memory leaves.
};

/// A parameter of an engine under its original name.
struct EngineParameter {
  Field field;  ///< The key.
  /// Turns the value (null: the default that depends on the context) into settings, and returns the value in
  /// force.
  Json (*apply)(EngineSettings& settings, const EngineContext& context, const Json& value);
  std::string_view policy_field = {};  ///< The field of the policy that has the same values; "" for none.
};

/// A known engine as a row of configuration.
struct Preset {
  std::string_view name;                               ///< As scenarios call it.
  std::string_view description;                        ///< One sentence.
  Policy (*policy)();                                  ///< What its parameters leave alone.
  std::span<const EngineParameter* const> parameters;  ///< In the order in which they apply.
};

/// The engine presets.
std::span<const Preset> presets();
/// The preset of that name; null when there is none.
const Preset* find_preset(std::string_view name);

/// The section `engine` of a scenario, resolved.
struct EngineConfig {
  const Preset* preset = nullptr;       ///< The engine.
  Json parameters;                      ///< Its parameters, all of them, with the values in force.
  EngineSettings settings;              ///< What they and the overrides of `sched` come to.
  std::vector<std::string> overridden;  ///< Fields of the policy that `sched` sets.
};

/// Reads `{"preset": name, <original parameters>, "sched": {fields of Policy}}`: the preset's policy, then
/// its parameters, then `sched`. A parameter of another engine is refused by name.
EngineConfig read_engine(JsonReader reader, const EngineContext& context);
/// The key under which a field of the policy was or would be written: the engine's own parameter, unless
/// `sched` sets it or no parameter does.
std::string written_key(const EngineConfig& engine, std::string_view policy_field);
/// The section as `read_engine` reads it, with every parameter and every field of the policy.
Json engine_to_json(const EngineConfig& engine);

}  // namespace foretoken

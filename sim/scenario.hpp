#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cost.hpp"
#include "models/deployment.hpp"
#include "models/device.hpp"
#include "models/shape.hpp"
#include "sim/base/json.hpp"
#include "sim/core/policy.hpp"
#include "sim/metrics/slo.hpp"
#include "sim/presets.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// Where the price of a step comes from.
enum class CostKind : std::uint8_t { roofline, profile, affine };

/// The section `cost` of a scenario: exactly one of its three members.
struct CostConfig {
  CostKind kind = CostKind::roofline;
  std::string profile;        ///< Path of a profile.
  AffineCoefficients affine;  ///< Stated coefficients.
  RooflineOptions roofline;  ///< Distance from the datasheet; precisions and shards come from the deployment.
};

/// How a run is measured: the section `metrics` of a scenario.
struct MetricsConfig {
  std::int64_t exact_requests_max = 4'000'000;  ///< Finished requests up to which percentiles are exact.
  std::int64_t bootstrap_resamples =
      400;                           ///< Of the moving-block bootstrap on a fixed trace; 0: no intervals.
  std::int64_t bootstrap_block = 0;  ///< Requests per block; 0: chosen from the run.
};

/// Everything a run needs, read from one file and resolved: no default is open any more.
struct Scenario {
  std::string schema;                ///< `$schema` as written.
  std::string name;                  ///< Short name, by what it shows.
  std::string description;           ///< One or two sentences.
  std::string model;                 ///< Name or path as written; empty without a model.
  std::optional<ModelShape> shape;   ///< The model.
  std::string device;                ///< Name or path as written; empty without a device.
  std::optional<DeviceSheet> sheet;  ///< The device.
  DeploymentOptions deployment;      ///< How the model lies on devices.
  CostConfig cost;                   ///< Price of a step.
  EngineConfig engine;               ///< Preset, parameters, policy.
  Capacity capacity;                 ///< Sizes of the pools.
  WorkloadSpec workload;             ///< What arrives; its seed is `seed`.
  std::uint64_t seed = 1;            ///< Seed of the first replicate.
  std::int32_t replicates = 1;       ///< Runs with seeds seed, seed + 1, ...
  Duration horizon = kForever;       ///< The run is cut here.
  std::vector<Slo> slo;              ///< Thresholds.
  MetricsConfig metrics;             ///< How it is measured.

  /// The policy in force.
  const Policy& policy() const { return engine.settings.policy; }
};

/// Reads and resolves a scenario. `name` stands for the file in errors; relative paths in it are relative to
/// `folder`. Unknown keys, wrong types, impossible values and combinations are InputErrors with file, line
/// and pointer; a system that cannot exist is an InfeasibleError.
Scenario read_scenario(const Json& document, const std::string& name, const std::string& folder);

/// The resolved scenario, defaults included; reads back as the same one.
Json scenario_to_json(const Scenario& scenario);

/// Price of a step, and what it stands on.
struct ScenarioCost {
  std::unique_ptr<StepCost> cost;   ///< With counters of its own.
  DeviceSheet limits;               ///< What the hardware can do; zeros where unknown.
  std::string evidence;             ///< Grade and origin, for reports.
  std::optional<ModelShape> shape;  ///< The model that is priced, where there is one.
};
/// Makes the cost; reads the profile where there is one. A profile of another model is an InputError.
ScenarioCost scenario_cost(const Scenario& scenario);

/// JSON Schema (draft 2020-12) of a scenario file, made from the same rows that the reader uses.
Json scenario_schema();

/// Rows of the sections that are no policy, engine, workload or affine cost: "" is the top level.
std::span<const Field> scenario_fields(std::string_view section);

}  // namespace foretoken

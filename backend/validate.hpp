#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/live_run.hpp"
#include "models/profile.hpp"
#include "sim/base/json.hpp"

namespace foretoken {

/// How to validate.
struct ValidateOptions {
  /// Shares of the capacity that the simulator itself finds.
  std::vector<double> loads = {0.3, 0.7, 0.95};
  /// Live runs at each load.
  std::int32_t repeats = 5;
  std::function<void(std::string_view)> progress;
  const std::atomic<bool>* stop = nullptr;
};

/// A request metric, predicted and lived.
struct MetricError {
  double load = 0;
  std::string metric;
  /// Means over requests, seconds; the live one over repeats.
  double predicted_s = 0;
  double live_mean_s = 0;
  /// Over repeats; one run does not show its spread.
  std::optional<double> live_sd_s;
  /// Predicted over live, less 1.
  double error = 0;
  /// The error is smaller than the spread of the repeats, or their spread is unknown: it says nothing.
  bool inconclusive = false;
};

/// What became of the machine between calibration and the live runs of one load.
struct MachineDrift {
  double load = 0;
  /// Calibrated steps timed again before and after the runs: mean of now over then, less 1.
  double drift = 0;
  /// Sum of prices over sum of times of the live steps, less 1; a drift of the machine shows here with the
  /// other sign.
  double step_bias = 0;
};

/// Error of step prices on live steps.
struct StepError {
  Regime regime{};
  std::int64_t steps = 0;
  /// Sum of prices over sum of times, less 1.
  double bias = 0;
  /// Two standard errors of the bias over blocks of consecutive steps; unknown with a single block.
  std::optional<double> bias_two_se;
  double mape = 0;
  /// The same for the best constant per alike shape of the same runs; unknown where no three are alike.
  std::optional<double> noise_floor_mape;
};

/// Judges the prediction of a metric by the live runs' means of it.
MetricError metric_error(double load, Metric metric, double predicted_s, const std::vector<double>& live_s);
/// A live step beside its price.
struct PricedStep {
  StepShape shape;
  double live_ps = 0;
  double price_ps = 0;
};
/// Errors of prices by regime; regimes without steps are left out.
std::vector<StepError> step_errors(const std::vector<PricedStep>& steps);

/// Everything `foretoken validate` says.
struct Validation {
  std::string profile_hash;
  double capacity_per_s = 0;
  bool plans_equal = true;
  std::int64_t plans_compared = 0;
  /// The first difference, where there is one.
  std::string plan_difference;
  std::vector<StepError> steps;
  std::vector<MetricError> metrics;
  /// By load; empty where the costs are not of a profile.
  std::vector<MachineDrift> machine;
  /// Change of the arrival rate that explains the live latency at the highest load.
  double capacity_error = 0;
  bool stopped = false;
};

/// Predicts with the scenario's profile, which is frozen by now, runs live, and compares: plans by both
/// replays, step prices by regime, request metrics by load, capacity.
Validation validate(const Scenario& scenario, DeviceModel& model, const ValidateOptions& options);
/// The JSON document's `result`.
Json validation_to_json(const Validation& validation);

}  // namespace foretoken

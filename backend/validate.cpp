#include "backend/validate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "backend/calibrate.hpp"
#include "backend/replay.hpp"
#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr Metric kCompared[] = {Metric::ttft, Metric::tpot, Metric::e2e};
/// Steps per block when the standard error of a bias is estimated; neighbours share their disturbances.
constexpr std::size_t kBlockSteps = 50;

Json number_or_null(std::optional<double> value) { return value ? Json(*value) : Json(); }

double mean_s(const Report& report, Metric metric) {
  return report.whole.metrics[index(metric)].value_ps[static_cast<std::size_t>(Statistic::mean)] * 1e-12;
}

/// Steps that a constant can stand for: as many rows of each kind, and contexts within 64 tokens a row.
std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int64_t> alike(const StepShape& shape) {
  const StepFeatures features = shape.features();
  const std::int64_t width = 64 * std::max(1, shape.decode_count);
  return {computed_tokens(features), shape.decode_count, shape.sampled_rows,
          shape.decode_context_sum / width};
}

std::optional<double> noise_floor(const std::vector<PricedStep>& steps) {
  std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int64_t>, std::vector<double>> groups;
  for (const PricedStep& step : steps) groups[alike(step.shape)].push_back(step.live_ps);
  double sum = 0;
  std::int64_t count = 0;
  for (auto& [key, times] : groups) {
    if (times.size() < 3) continue;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                     times.end());
    const double constant = times[times.size() / 2];
    for (const double time : times) sum += std::abs(constant - time) / time;
    count += static_cast<std::int64_t>(times.size());
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

StepError step_error(Regime regime, const std::vector<PricedStep>& steps) {
  StepError error;
  error.regime = regime;
  error.steps = static_cast<std::int64_t>(steps.size());
  double price = 0, live = 0, relative = 0;
  std::vector<double> blocks;
  for (std::size_t begin = 0; begin < steps.size(); begin += kBlockSteps) {
    double block_price = 0, block_live = 0;
    for (std::size_t i = begin; i < std::min(steps.size(), begin + kBlockSteps); ++i) {
      block_price += steps[i].price_ps;
      block_live += steps[i].live_ps;
      relative += std::abs(steps[i].price_ps - steps[i].live_ps) / steps[i].live_ps;
    }
    blocks.push_back(block_price / block_live);
    price += block_price;
    live += block_live;
  }
  error.bias = price / live - 1;
  error.mape = relative / static_cast<double>(steps.size());
  double variance = 0;
  for (const double block : blocks) variance += (block - price / live) * (block - price / live);
  const auto n = static_cast<double>(blocks.size());
  if (n > 1) error.bias_two_se = 2 * std::sqrt(variance / (n - 1) / n);
  error.noise_floor_mape = noise_floor(steps);
  return error;
}

Report predict(const Scenario& scenario, double rate_per_s) {
  Scenario one = at_rate(scenario, rate_per_s);
  one.replicates = 1;
  one.metrics.bootstrap_resamples = 0;
  return simulate(one).report;
}

/// The relative change of the rate at which the simulation has the live mean of e2e.
double capacity_error(const Scenario& scenario, double rate_per_s, double live_e2e_s) {
  const auto is_below = [&](double factor) {
    return mean_s(predict(scenario, rate_per_s * factor), Metric::e2e) < live_e2e_s;
  };
  // A machine that became far slower or faster lies beyond any bracket that is written down here.
  double below = 0.8, above = 1.2;
  for (int i = 0; i < 8 && !is_below(below); ++i) below *= 0.7;
  for (int i = 0; i < 8 && is_below(above); ++i) above *= 1.4;
  for (int i = 0; i < 18; ++i) {
    const double middle = 0.5 * (below + above);
    (is_below(middle) ? below : above) = middle;
  }
  return 0.5 * (below + above) - 1;
}

/// Collects what the live runs of a validation show.
class Validator {
 public:
  Validator(const Scenario& scenario, DeviceModel& model, const ValidateOptions& options)
      : scenario_(scenario), model_(model), options_(options), priced_(scenario_cost(scenario)) {
    if (scenario.cost.kind == CostKind::profile) profile_ = read_profile(scenario.cost.profile);
    result_.profile_hash = profile_ ? profile_->hash : priced_.cost->hash();
  }

  Validation run() {
    say("validate: searching for the capacity");
    CapacityOptions search;
    search.stop = options_.stop;
    result_.capacity_per_s = find_capacity(scenario_, search).rate_per_s;
    if (options_.stop != nullptr && options_.stop->load()) result_.stopped = true;
    std::optional<double> before = drift();
    for (const double load : options_.loads) {
      if (result_.stopped) break;
      const std::size_t steps_before = steps_.size();
      at_load(load);
      const std::optional<double> after = drift();
      if (before && after)
        result_.machine.push_back({load, 0.5 * (*before + *after), bias_since(steps_before)});
      before = after;
    }
    result_.steps = step_errors(steps_);
    return result_;
  }

 private:
  void say(const std::string& text) {
    if (options_.progress) options_.progress(text);
  }

  std::optional<double> drift() {
    if (!profile_ || result_.stopped) return std::nullopt;
    CalibrationOptions how = calibration_options(scenario_);
    how.stop = options_.stop;
    return machine_drift(model_, *profile_, how);
  }

  double bias_since(std::size_t first) const {
    double price = 0, live = 0;
    for (std::size_t i = first; i < steps_.size(); ++i) {
      price += steps_[i].price_ps;
      live += steps_[i].live_ps;
    }
    return live > 0 ? price / live - 1 : 0;
  }

  void at_load(double load) {
    const double rate_per_s = load * result_.capacity_per_s;
    const Report predicted = predict(scenario_, rate_per_s);
    std::vector<double> lived[std::size(kCompared)];
    for (std::int32_t repeat = 0; repeat < options_.repeats && !result_.stopped; ++repeat) {
      say("validate: live at " + short_number(100 * load) + " % (" + short_number(rate_per_s) +
          " req/s), run " + std::to_string(repeat + 1) + " of " + std::to_string(options_.repeats));
      const LiveRun live = run_live(at_rate(scenario_, rate_per_s), model_, nullptr, options_.stop);
      if (!live.lost.empty()) throw DeviceError(live.lost);
      result_.stopped = live.stopped;
      if (live.stopped) break;
      judge_plans(live.recorder);
      price_steps(live.recorder);
      for (std::size_t m = 0; m < std::size(kCompared); ++m)
        lived[m].push_back(mean_s(live.report, kCompared[m]));
    }
    if (lived[0].empty()) return;
    for (std::size_t m = 0; m < std::size(kCompared); ++m)
      result_.metrics.push_back(metric_error(load, kCompared[m], mean_s(predicted, kCompared[m]), lived[m]));
    if (load == *std::max_element(options_.loads.begin(), options_.loads.end()))
      result_.capacity_error = capacity_error(scenario_, rate_per_s, result_.metrics.back().live_mean_s);
  }

  void judge_plans(const RunRecorder& recorder) {
    for (const ReplayKind kind : {ReplayKind::whole, ReplayKind::durations}) {
      const PlanDifference difference = replay(recorder, scenario_.policy(), scenario_.capacity, kind);
      result_.plans_compared += difference.compared;
      if (difference.equal) continue;
      result_.plans_equal = false;
      if (result_.plan_difference.empty())
        result_.plan_difference =
            (kind == ReplayKind::whole ? "fed back whole: " : "fed the durations: ") + difference.text;
    }
  }

  void price_steps(const RunRecorder& recorder) {
    for (std::size_t i = 0; i < recorder.steps().size(); ++i) {
      PricedStep step;
      step.shape = recorder.shapes()[i];
      step.live_ps = static_cast<double>(recorder.steps()[i].first.count());
      step.price_ps = static_cast<double>(priced_.cost->estimate_ps(step.shape.features()));
      steps_.push_back(std::move(step));
    }
  }

  const Scenario& scenario_;
  DeviceModel& model_;
  const ValidateOptions& options_;
  ScenarioCost priced_;
  std::optional<Profile> profile_;
  Validation result_;
  std::vector<PricedStep> steps_;
};

}  // namespace

std::vector<StepError> step_errors(const std::vector<PricedStep>& steps) {
  std::vector<StepError> errors;
  for (int r = 0; r < kRegimes; ++r) {
    std::vector<PricedStep> of_regime;
    for (const PricedStep& step : steps)
      if (regime_of(step.shape.features()) == static_cast<Regime>(r)) of_regime.push_back(step);
    if (!of_regime.empty()) errors.push_back(step_error(static_cast<Regime>(r), of_regime));
  }
  return errors;
}

MetricError metric_error(double load, Metric metric, double predicted_s, const std::vector<double>& live_s) {
  MetricError row;
  row.load = load;
  row.metric = metric_name(metric);
  row.predicted_s = predicted_s;
  const auto runs = static_cast<double>(live_s.size());
  for (const double value : live_s) row.live_mean_s += value / runs;
  row.error = row.predicted_s / row.live_mean_s - 1;
  double squares = 0;
  for (const double value : live_s) squares += (value - row.live_mean_s) * (value - row.live_mean_s);
  if (runs > 1) row.live_sd_s = std::sqrt(squares / (runs - 1));
  row.inconclusive = !row.live_sd_s || std::abs(row.predicted_s - row.live_mean_s) < *row.live_sd_s;
  return row;
}

Validation validate(const Scenario& scenario, DeviceModel& model, const ValidateOptions& options) {
  return Validator(scenario, model, options).run();
}

Json validation_to_json(const Validation& v) {
  Json steps = Json::array();
  for (const StepError& e : v.steps)
    steps.push_back(Json::object({{"regime", regime_name(e.regime)},
                                  {"steps", e.steps},
                                  {"bias", e.bias},
                                  {"bias_two_se", number_or_null(e.bias_two_se)},
                                  {"mape", e.mape},
                                  {"noise_floor_mape", number_or_null(e.noise_floor_mape)}}));
  Json metrics = Json::array();
  for (const MetricError& e : v.metrics)
    metrics.push_back(Json::object({{"load", e.load},
                                    {"metric", e.metric},
                                    {"predicted", e.predicted_s},
                                    {"live_mean", e.live_mean_s},
                                    {"live_sd", number_or_null(e.live_sd_s)},
                                    {"error", e.error},
                                    {"inconclusive", e.inconclusive}}));
  Json machine = Json::array();
  for (const MachineDrift& m : v.machine)
    machine.push_back(Json::object({{"load", m.load}, {"drift", m.drift}, {"step_bias", m.step_bias}}));
  return Json::object({{"profile_hash", v.profile_hash},
                       {"capacity_per_s", v.capacity_per_s},
                       {"plans_equal", v.plans_equal},
                       {"plans_compared", v.plans_compared},
                       {"plan_difference", v.plan_difference},
                       {"metrics", metrics},
                       {"steps", steps},
                       {"machine", machine},
                       {"capacity_error", v.capacity_error}});
}

}  // namespace foretoken

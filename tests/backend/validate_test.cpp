#include "backend/validate.hpp"

#include "models/cost.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

PricedStep decode(std::int32_t count, double live_ps, double price_ps) {
  PricedStep step;
  step.shape.decode_count = step.shape.sampled_rows = count;
  step.shape.decode_context_sum = std::int64_t{count} * 100;
  step.shape.decode_context_min = step.shape.decode_context_max = 100;
  step.live_ps = live_ps;
  step.price_ps = price_ps;
  return step;
}

}  // namespace

TEST_CASE("the spread of one run is unknown, and so is whether its error says anything") {
  const MetricError one = metric_error(0.5, Metric::ttft, 1.0, {2.0});
  CHECK_FALSE(one.live_sd_s.has_value());
  CHECK(one.inconclusive);
  CHECK(one.error == -0.5);
  const MetricError two = metric_error(0.5, Metric::ttft, 1.0, {1.9, 2.1});
  REQUIRE(two.live_sd_s.has_value());
  CHECK(*two.live_sd_s == Approx(0.141421).epsilon(1e-4));
  CHECK_FALSE(two.inconclusive);
  CHECK(metric_error(0.5, Metric::ttft, 1.0, {0.9, 1.2}).inconclusive);
}

TEST_CASE("a standard error needs two blocks of steps and a noise floor three steps alike") {
  std::vector<PricedStep> steps = {decode(1, 100, 110), decode(2, 200, 210)};
  StepError error = step_errors(steps).at(0);
  CHECK_FALSE(error.bias_two_se.has_value());
  CHECK_FALSE(error.noise_floor_mape.has_value());
  steps.resize(1);
  for (int i = 0; i < 60; ++i) steps.push_back(decode(1, 100 + i % 3, 110));
  error = step_errors(steps).at(0);
  REQUIRE(error.bias_two_se.has_value());
  CHECK(*error.bias_two_se > 0);
  REQUIRE(error.noise_floor_mape.has_value());
  CHECK(*error.noise_floor_mape < 0.01);
}

TEST_CASE("what is unknown is null in the document") {
  Validation validation;
  validation.steps.emplace_back();
  validation.metrics.push_back(metric_error(0.5, Metric::e2e, 1.0, {2.0}));
  const Json json = validation_to_json(validation);
  const Json& step = json.find("steps")->as_array()[0];
  CHECK(step.find("bias_two_se")->is_null());
  CHECK(step.find("noise_floor_mape")->is_null());
  CHECK(json.find("metrics")->as_array()[0].find("live_sd")->is_null());
}

}  // namespace foretoken

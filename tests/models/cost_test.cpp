#include "models/cost.hpp"

#include <algorithm>
#include <set>

#include "models/cost_tables.hpp"
#include "models/profile.hpp"
#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::unique_ptr<StepCost> affine(double step_us, double token_us, double context_token_us) {
  AffineCoefficients coefficients;
  coefficients.step_us = step_us;
  coefficients.token_us = token_us;
  coefficients.context_token_us = context_token_us;
  return make_affine_cost(coefficients);
}

std::unique_ptr<StepCost> calibrated(std::uint64_t seed) {
  return make_cost(fit_profile(timings({}, sweep(), 3, seed), origin()));
}

std::unique_ptr<StepCost> roofline(std::int32_t tensor_parallel) {
  RooflineOptions options;
  options.tensor_parallel = tensor_parallel;
  return make_roofline_cost(find_shape("llama-3.1-8b", kDataFolder), find_device("h100-sxm", kDataFolder),
                            options);
}

/// Checks that a window tells the price of each of its repeats; returns whether it always did.
bool window_holds(StepCost& cost, const StepShape& shape) {
  const DecodeWindow window = cost.decode_window(shape.features());
  if (window.repeats_valid < 1) return false;
  std::set<std::int64_t> repeats{0, window.repeats_valid - 1};
  for (std::int64_t j = 1; j < window.repeats_valid && j < 100000; j = j * 3 / 2 + 1) repeats.insert(j);
  for (const std::int64_t j : repeats) {
    if (j + shape.decode_context_max > 100000000) continue;
    if (cost.step_ps(advanced(shape.features(), j)) != window.first_ps + j * window.growth_ps) return false;
  }
  return true;
}

/// A wrapper with a fault: its windows last one repeat too long.
class LateWindows final : public StepCost {
 public:
  explicit LateWindows(std::unique_ptr<StepCost> inner) : inner_(std::move(inner)) {}
  const TransferCost& transfer() const override { return inner_->transfer(); }
  const std::string& hash() const override { return inner_->hash(); }
  Grade grade() const override { return inner_->grade(); }
  std::unique_ptr<StepCost> clone() const override { return std::make_unique<LateWindows>(inner_->clone()); }

 protected:
  std::int64_t price_step(const StepFeatures& features, CostCounters&) const override {
    return inner_->estimate_ps(features);
  }
  DecodeWindow price_window(const StepFeatures& features, CostCounters&) const override {
    DecodeWindow window = inner_->clone()->decode_window(features);
    ++window.repeats_valid;
    return window;
  }

 private:
  std::unique_ptr<StepCost> inner_;
};

}  // namespace

TEST_CASE("a window's closed form equals pricing each of its repeats", "[property]") {
  const RandomStream random(7, 1);
  std::vector<std::unique_ptr<StepCost>> costs;
  costs.push_back(affine(5000, 20, 0.04));
  costs.push_back(roofline(1));
  costs.push_back(roofline(4));
  costs.push_back(calibrated(1));
  for (const auto& cost : costs)
    for (std::uint64_t draw = 0; draw < 500; ++draw) {
      INFO("draw " << draw << ", " << grade_name(cost->grade()));
      CHECK(window_holds(*cost, drawn_step(random, draw, true)));
    }
}

TEST_CASE("a window that lasts one repeat too long is caught", "[property]") {
  const RandomStream random(7, 1);
  LateWindows cost(calibrated(1));
  int failures = 0;
  for (std::uint64_t draw = 0; draw < 200; ++draw)
    failures += !window_holds(cost, drawn_step(random, draw, true));
  CHECK(failures > 0);
}

TEST_CASE("windows follow one another to any length without a gap", "[property]") {
  const auto cost = calibrated(2);
  StepFeatures features = ragged(5, 3, 60).features();
  const StepShape owner = ragged(5, 3, 60);
  features = owner.features();
  std::int64_t repeats = 0, by_windows = 0, by_steps = 0;
  while (repeats < 5000) {
    const StepFeatures now = advanced(features, repeats);
    const DecodeWindow window = cost->decode_window(now);
    const std::int64_t count = std::min<std::int64_t>(window.repeats_valid, 5000 - repeats);
    by_windows += count * window.first_ps + window.growth_ps * (count * (count - 1) / 2);
    repeats += count;
  }
  for (std::int64_t j = 0; j < 5000; ++j) by_steps += cost->step_ps(advanced(features, j));
  CHECK(by_windows == by_steps);
}

TEST_CASE("a stated cost adds up its coefficients exactly") {
  AffineCoefficients coefficients;
  coefficients.step_us = 100;
  coefficients.token_us = 2;
  coefficients.context_token_us = 0.01;
  coefficients.chunk_us = 7;
  coefficients.pair_us = 0.001;
  coefficients.sampled_row_us = 3;
  coefficients.transfer_us = 50;
  coefficients.transfer_block_us = 4;
  const auto cost = make_affine_cost(coefficients);
  const StepShape step = mixed(10, 20, decodes(2, 30));
  // 100 + 2 x 12 tokens + 3 x 3 rows + 0.01 x (60 + 20) context + 7 + 0.001 x (10 x 20 + 55) pairs.
  CHECK(cost->step_ps(step.features()) == 141055000);
  CHECK(cost->transfer().copy_ps(3) == 62000000);
  CHECK(cost->transfer().copy_ps(0) == 0);
  CHECK(cost->grade() == Grade::stated);
}

TEST_CASE("stated coefficients are read by name, and nothing that never moves time is accepted") {
  const Json good = Json::parse(R"({"step_us": 5000, "token_us": 20.5})", "s.json");
  CHECK(affine_from_json(good, "s.json", "/cost").token_us == 20.5);
  CHECK(affine_to_json(affine_from_json(good, "s.json", "/cost")).find("step_us")->as_double() == 5000);
  CHECK_THROWS_WITH(affine_from_json(Json::parse(R"({"token_u": 1})", "s.json"), "s.json", "/cost"),
                    Catch::Matchers::Contains("token_us"));
  CHECK_THROWS_AS(affine_from_json(Json::parse(R"({"step_us": -1})", "s.json"), "s.json", ""), InputError);
  CHECK_THROWS_AS(affine_from_json(Json::parse("{}", "s.json"), "s.json", ""), InputError);
}

TEST_CASE("scaling every coefficient scales every price", "[property]") {
  const RandomStream random(11, 1);
  const auto cost = affine(500, 20, 0.25);
  const auto tripled = affine(1500, 60, 0.75);
  for (std::uint64_t draw = 0; draw < 200; ++draw) {
    const StepShape shape = drawn_step(random, draw, false);
    CHECK(tripled->step_ps(shape.features()) == 3 * cost->step_ps(shape.features()));
  }
}

TEST_CASE("pairs by segment equal a loop over tokens", "[property]") {
  const RandomStream random(3, 1);
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const std::int64_t begin = random.integer(4 * draw, 0, 60),
                       end = begin + random.integer(4 * draw + 1, 0, 60);
    const std::int64_t low = random.integer(4 * draw + 2, 0, 80),
                       high = low + random.integer(4 * draw + 3, 1, 50);
    std::int64_t looped = 0;
    for (std::int64_t p = begin; p < end; ++p) looped += std::clamp<std::int64_t>(p + 1 - low, 0, high - low);
    CHECK(pairs_in_segment(begin, end, low, high) == looped);
  }
}

TEST_CASE("splitting a prompt into chunks keeps its pairs", "[property]") {
  const StepShape whole = prefill(300, 40, false);
  StepShape parts;
  parts.chunks = {{100, 40}, {150, 140}, {50, 290}};
  CHECK(attention_pairs(whole.features()) == attention_pairs(parts.features()));
}

TEST_CASE("counters tell the queries beyond the measured range, and estimates are not counted") {
  const auto cost = calibrated(3);
  (void)cost->step_ps(decodes(64, 2048).features());
  CHECK(cost->counters().outside_decode_count == 0);
  (void)cost->step_ps(decodes(65, 100).features());
  (void)cost->step_ps(decodes(4, 3000).features());
  (void)cost->step_ps(prefill(4000, 0, true).features());
  (void)cost->estimate_ps(decodes(100, 100).features());
  CHECK(cost->counters().queries == 4);
  CHECK(cost->counters().outside_decode_count == 1);
  CHECK(cost->counters().outside_context == 2);
  CHECK(cost->counters().outside_tokens == 1);
  CHECK(cost->clone()->counters().queries == 0);
  CHECK(cost->clone()->hash() == cost->hash());
}

TEST_CASE("prices beyond the measured range keep growing") {
  const auto cost = calibrated(3);
  CHECK(cost->step_ps(decodes(400, 100).features()) > cost->step_ps(decodes(200, 100).features()));
  CHECK(cost->step_ps(prefill(4000, 0, true).features()) > cost->step_ps(prefill(2000, 0, true).features()));
  CHECK(cost->step_ps(decodes(8, 9000).features()) > cost->step_ps(decodes(8, 5000).features()));
}

TEST_CASE("a hash names the prices, not the object") {
  CHECK(affine(1, 2, 3)->hash() == affine(1, 2, 3)->hash());
  CHECK(affine(1, 2, 3)->hash() != affine(1, 2, 4)->hash());
}

TEST_CASE("no roofline price undercuts the floor of its device", "[property]") {
  const RandomStream random(5, 1);
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  const DeviceSheet device = find_device("h100-sxm", kDataFolder);
  for (const std::int32_t ranks : {1, 2, 8}) {
    const auto cost = roofline(ranks);
    const HardwareFloor floor = make_floor(shape, Precision::bf16, Precision::bf16, device, ranks);
    for (std::uint64_t draw = 0; draw < 300; ++draw) {
      const StepShape step = drawn_step(random, draw, false);
      CHECK(cost->step_ps(step.features()) >= floor_ps(floor, step.features()));
    }
    CHECK(cost->counters().below_floor == 0);
  }
}

TEST_CASE("a cost that counts two of three FFN matrices falls below the floor and is counted") {
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  ModelShape faulty = shape;
  faulty.ffn = shape.ffn * 2 / 3;
  const DeviceSheet device = find_device("h100-sxm", kDataFolder);
  RooflineOptions options;
  options.bandwidth_efficiency = 0.95;
  options.flops_efficiency = 0.95;
  options.step_fixed_us = options.layer_fixed_us = 0;
  const HardwareFloor floor = make_floor(shape, Precision::bf16, Precision::bf16, device);
  const auto honest = make_roofline_cost(shape, device, options);
  const auto broken = make_roofline_cost(faulty, device, options);
  for (const StepShape& step : {decodes(1, 128), decodes(32, 128), prefill(2048, 0, true)}) {
    CHECK_FALSE(is_below_floor(floor, step.features(), honest->step_ps(step.features())));
    CHECK(is_below_floor(floor, step.features(), broken->step_ps(step.features())));
  }
}

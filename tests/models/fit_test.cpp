#include "models/fit.hpp"

#include <cmath>

#include "models/least_squares.hpp"
#include "models/profile.hpp"
#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

/// Steps of sizes that the sweep does not contain, as a live run would have them.
std::vector<StepShape> live_steps() {
  const RandomStream random(99, 1);
  std::vector<StepShape> steps;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto pick = [&](std::uint64_t j, std::int64_t low, std::int64_t high) {
      return static_cast<std::int32_t>(random.integer(8 * i + j, low, high));
    };
    StepShape rows = ragged(pick(0, 1, 48), pick(1, 20, 400), pick(2, 400, 1500));
    if (i % 4 == 0) rows = mixed(pick(3, 20, 400), pick(4, 0, 800), rows);
    if (i % 4 == 1) rows = prefill(pick(3, 8, 500), pick(4, 0, 1000), true);
    steps.push_back(rows);
  }
  return steps;
}

}  // namespace

TEST_CASE("non-negative least squares finds the optimum that the conditions name", "[property]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, 1);
    const auto unknowns = static_cast<std::size_t>(random.integer(0, 1, 9));
    LeastSquares system(unknowns);
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    for (std::uint64_t i = 0; i < 20; ++i) {
      rows.emplace_back();
      for (std::uint64_t j = 0; j < unknowns; ++j) rows.back().push_back(random.normal(1000 + 16 * i + j));
      targets.push_back(random.normal(5000 + i));
      system.add(rows.back(), targets.back(), 1.0);
    }
    const std::vector<double> x = system.solve_nonnegative();
    for (std::size_t j = 0; j < unknowns; ++j) {
      double gradient = 0;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        double residual = -targets[i];
        for (std::size_t k = 0; k < unknowns; ++k) residual += rows[i][k] * x[k];
        gradient += residual * rows[i][j];
      }
      INFO("seed " << seed << ", unknown " << j);
      CHECK(x[j] >= 0);
      if (x[j] > 0) CHECK(std::abs(gradient) < 1e-6);
      if (x[j] == 0) CHECK(gradient > -1e-6);
    }
  }
}

TEST_CASE("unknowns without samples come out as zero") {
  LeastSquares system(3);
  system.add({2, 0, 0}, 6, 1);
  CHECK(system.solve_nonnegative()[0] == Approx(3));
  CHECK(system.solve_nonnegative()[1] == 0);
  CHECK(LeastSquares(2).solve_nonnegative() == std::vector<double>{0, 0});
}

TEST_CASE("knots are thinned but keep their ends") {
  CHECK(thin_knots({9, 1, 2, 2, 8, 100, 101}, 8, 1.1) == std::vector<std::int32_t>{1, 2, 8, 9, 101});
  CHECK(thin_knots({5}, 1, 2.0) == std::vector<std::int32_t>{5});
  CHECK(thin_knots({}, 1, 2.0).empty());
  CHECK(place_among({0, 10}, 2.5).share == 0.25);
  CHECK(place_among({0, 10}, 12).low == 1);
}

TEST_CASE("a trimmed mean forgets the same count at both ends") {
  CHECK(trimmed_mean({1000, 10, 11, 12, 1}, 0.1) == Approx(11));
  CHECK(trimmed_mean({10, 30}, 0.1) == Approx(20));
  CHECK(trimmed_mean({7}, 0.4) == Approx(7));
  CHECK(trimmed_mean({1, 2, 3, 4}, 0.0) == Approx(2.5));
}

TEST_CASE("a fit finds a hidden machine again: small errors and no bias on shapes it never saw") {
  const HiddenMachine machine;
  for (const std::uint64_t seed : {1u, 2u}) {
    const Profile profile = fit_profile(timings(machine, sweep(), 9, seed), origin());
    REQUIRE(profile.errors.size() == kRegimes);
    for (const RegimeError& error : profile.errors) {
      INFO(regime_name(error.regime) << " shapes " << error.shapes << " bias " << error.bias << " mape "
                                     << error.mape << " floor " << error.noise_floor_mape.value_or(-1)
                                     << " spikes " << error.spike_share);
      CHECK(error.shapes >= 3);
      CHECK(std::abs(error.bias) < 0.03);
      CHECK(error.mape < error.noise_floor_mape.value_or(0) + 0.035);
    }
    const auto cost = make_cost(profile);
    // One timing in a hundred takes three times as long; what that adds is judged beside the form.
    const SpikeShares spikes = spike_shares(profile.samples, profile.trim_share);
    for (const double share : spikes) CHECK(std::abs(share - 0.02) < 0.015);
    double predicted = 0, real = 0, errors = 0;
    const std::vector<StepShape> steps = live_steps();
    for (const StepShape& step : steps) {
      const auto regime = static_cast<std::size_t>(regime_of(step.features()));
      const double price = static_cast<double>(cost->step_ps(step.features())) / (1 + spikes[regime]);
      const double truth = machine.true_ps(step.features());
      predicted += price;
      real += truth;
      errors += std::abs(price / truth - 1);
    }
    INFO("bias " << predicted / real - 1 << " mape " << errors / static_cast<double>(steps.size()));
    CHECK(std::abs(predicted / real - 1) < 0.005);
    CHECK(errors / static_cast<double>(steps.size()) < 0.02);
  }
}

TEST_CASE("outlying timings raise all prices by their pooled share and distort none") {
  HiddenMachine quiet{0.002, 0.0};
  HiddenMachine spiky{0.002, 0.05};
  const auto clean = make_cost(fit_profile(timings(quiet, sweep(), 20, 5), origin()));
  const auto dirty = make_cost(fit_profile(timings(spiky, sweep(), 20, 5), origin()));
  double clean_sum = 0, dirty_sum = 0, errors = 0;
  const std::vector<StepShape> steps = live_steps();
  for (const StepShape& step : steps) {
    const auto clean_ps = static_cast<double>(clean->step_ps(step.features()));
    const auto dirty_ps = static_cast<double>(dirty->step_ps(step.features()));
    clean_sum += clean_ps;
    dirty_sum += dirty_ps;
    errors += std::abs(dirty_ps / (1.1 * clean_ps) - 1);
  }
  // One timing in twenty takes three times as long: the mean is a tenth higher, give or take what 600 timings
  // of a regime leave open (a standard error of 0.018).
  CHECK(std::abs(dirty_sum / clean_sum - 1.1) < 0.03);
  CHECK(errors / static_cast<double>(steps.size()) < 0.03);
}

TEST_CASE("whole shapes are held out, never the ends of the range") {
  const Profile profile = fit_profile(timings({}, sweep(), 3, 4), origin());
  int held_out = 0;
  for (const ShapeSamples& sample : profile.samples) {
    held_out += sample.held_out;
    CHECK(sample.durations_ps.size() == 3);
    if (sample.held_out) CHECK(computed_tokens(sample.shape.features()) < profile.range.tokens_max);
  }
  CHECK(held_out >= 20);
  FitOptions none;
  none.held_out_every = 0;
  CHECK(fit_profile(timings({}, sweep(), 1, 4), origin(), {}, none).errors.empty());
}

TEST_CASE("few samples still make a cost, and none are refused") {
  const Profile one = fit_profile(timings({}, {decodes(2, 64)}, 2, 1), origin());
  CHECK(make_cost(one)->step_ps(decodes(2, 64).features()) > 0);
  CHECK(make_cost(one)->step_ps(prefill(100, 0, true).features()) > 0);
  const Profile chunks =
      fit_profile(timings({}, {prefill(16, 0, true), prefill(64, 0, true)}, 2, 1), origin());
  CHECK(make_cost(chunks)->step_ps(decodes(2, 64).features()) > 0);
  CHECK_THROWS_AS(fit_profile({}, origin()), InputError);
}

TEST_CASE("padding costs what it was measured to cost") {
  HiddenMachine machine{0.0, 0.0};
  std::vector<StepShape> shapes = sweep();
  for (const std::int32_t rows : {1, 4, 8}) {
    shapes.push_back(decodes(16 - rows, 256));
    shapes.back().padded_rows = rows;
    shapes.back().sampled_rows += rows;
  }
  std::vector<Sample> samples = timings(machine, shapes, 1, 1);
  for (Sample& sample : samples) sample.duration_ps += sample.shape.padded_rows * 20000000;
  const auto cost = make_cost(fit_profile(samples, origin()));
  for (const Sample& sample : samples)
    if (sample.shape.padded_rows > 0)
      CHECK(static_cast<double>(cost->step_ps(sample.shape.features())) ==
            Approx(static_cast<double>(sample.duration_ps)).epsilon(0.015));
}

TEST_CASE("transfer costs are fitted from timed copies") {
  const std::vector<TransferSample> transfers = {
      {1, 12000000}, {4, 18000000}, {16, 42000000}, {64, 138000000}};
  const Profile profile = fit_profile(timings({}, {decodes(2, 64)}, 2, 1), origin(), transfers);
  CHECK(static_cast<double>(profile.transfer.fixed_ps) == Approx(10e6).epsilon(1e-3));
  CHECK(static_cast<double>(profile.transfer.block_ps) == Approx(2e6).epsilon(1e-3));
}

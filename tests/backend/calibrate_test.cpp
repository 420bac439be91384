#include "backend/calibrate.hpp"

#include <algorithm>

#include "backend/cpu/model.hpp"
#include "models/shape.hpp"
#include "sim/base/json.hpp"
#include "sim/base/resources.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

CpuModel tiny_model() {
  return CpuModel(
      shape_from_hf(Json::parse(*resource("models/data/tiny.json"), "tiny", true), "tiny", "tiny"),
      ElementType::f32, 1, 1);
}

CalibrationOptions small_sweep() {
  CalibrationOptions options;
  options.sequences_max = 4;
  options.batch_tokens_max = 64;
  options.tokens_max = 128;
  options.passes = 3;
  return options;
}

Profile profile_of(const DeviceModel& model, const Calibration& measured) {
  ProfileOrigin origin;
  origin.shape = model.shape();
  origin.weight_precision = Precision::f32;
  origin.kv_precision = Precision::f32;
  return fit_profile(measured.samples, origin, measured.transfers);
}

}  // namespace

TEST_CASE("calibration times every regime and the copies of blocks") {
  CpuModel model = tiny_model();
  const Calibration measured = calibrate(model, small_sweep());
  for (const Regime regime : {Regime::prefill, Regime::decode, Regime::mixed, Regime::ragged})
    CHECK(std::any_of(measured.samples.begin(), measured.samples.end(),
                      [&](const Sample& sample) { return sample.regime == regime; }));
  CHECK(std::all_of(measured.samples.begin(), measured.samples.end(),
                    [](const Sample& sample) { return sample.duration_ps > 0; }));
  REQUIRE_FALSE(measured.transfers.empty());
  const Profile profile = profile_of(model, measured);
  CHECK(profile.transfer.copy_ps(8) > 0);
  CHECK(profile.transfer.copy_ps(8) >= profile.transfer.copy_ps(4));
}

TEST_CASE("calibration for static batching times padding and dead rows") {
  CpuModel model = tiny_model();
  CalibrationOptions options = small_sweep();
  options.padded = true;
  const Calibration measured = calibrate(model, options);
  const auto has = [&](auto property) {
    return std::any_of(measured.samples.begin(), measured.samples.end(),
                       [&](const Sample& sample) { return property(sample.shape); });
  };
  CHECK(has([](const StepShape& shape) { return shape.padded_tokens > 0; }));
  CHECK(has([](const StepShape& shape) { return shape.padded_rows > 0; }));
}

TEST_CASE("drift is the change of the machine since the profile was measured") {
  CpuModel model = tiny_model();
  Calibration measured = calibrate(model, small_sweep());
  REQUIRE(machine_drift(model, profile_of(model, measured), small_sweep()).has_value());
  // As if the machine had been a thousand times slower then: whatever its noise, it is faster now.
  for (Sample& sample : measured.samples) sample.duration_ps *= 1000;
  CHECK(*machine_drift(model, profile_of(model, measured), small_sweep()) < -0.9);
  CalibrationOptions others = small_sweep();
  others.padded = true;
  Profile nothing_alike = profile_of(model, measured);
  nothing_alike.samples.clear();
  CHECK_FALSE(machine_drift(model, nothing_alike, others).has_value());
}

}  // namespace foretoken

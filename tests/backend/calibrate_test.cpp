#include "backend/calibrate.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>

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

TEST_CASE("calibration ends with its time, but not before every shape was timed once") {
  CpuModel model = tiny_model();
  CalibrationOptions options = small_sweep();
  options.seconds_max = 0;
  const Calibration once = calibrate(model, options);
  CHECK(once.passes == 1.0);
  options.seconds_max = 1000;
  const Calibration thrice = calibrate(model, options);
  CHECK(thrice.passes == 3.0);
  CHECK(thrice.samples.size() == 3 * once.samples.size());
  // A single timing of each shape says nothing of the noise.
  const Profile profile = profile_of(model, once);
  REQUIRE_FALSE(profile.errors.empty());
  for (const RegimeError& error : profile.errors) CHECK_FALSE(error.noise_floor_mape.has_value());
  const Json json = profile_to_json(profile);
  CHECK(json.find("held_out_errors")->as_array()[0].find("noise_floor_mape")->is_null());
  CHECK((profile_from_json(json, "profile").errors == profile.errors));
  for (const RegimeError& error : profile_of(model, thrice).errors) CHECK(error.noise_floor_mape.has_value());
}

TEST_CASE("weights that are stopped are left as they are, and nothing runs with them") {
  const std::atomic<bool> stop{true};
  const ModelShape shape =
      shape_from_hf(Json::parse(*resource("models/data/tiny.json"), "tiny", true), "tiny", "tiny");
  Runtime<Cpu> runtime(1);
  const Weights<Cpu> stopped = random_weights(shape, ElementType::f32, 1, runtime, &stop);
  const cpu::Buffer& memory = stopped.memory.front();
  CHECK(weight_bytes(shape, ElementType::f32) == memory.size());
  CHECK(std::all_of(memory.data(), memory.data() + memory.size(),
                    [](std::byte b) { return b == std::byte{0}; }));
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

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backend/cpu/model.hpp"
#include "backend/live_run.hpp"
#include "backend/plugin.hpp"
#include "backend/replay.hpp"
#include "tests/backend/busy_scenario.hpp"
#include "tests/backend/decoder_driver.hpp"
#include "tests/catch.hpp"

// ThreadSanitizer does not understand the fibers of the emulated device.
#if !defined(__SANITIZE_THREAD__)
namespace foretoken {
namespace {

using testing::DecoderDriver;

ModelShape grouped_shape(const std::string& change = "") {
  ModelShape shape = testing::shipped_shape("tiny");
  shape.heads = 4;
  shape.kv_heads = 2;
  if (change == "bias") shape.qkv_bias = true;
  if (change == "tied") shape.tied_embeddings = true;
  return shape;
}

std::unique_ptr<DeviceModel> emulated(const ModelShape& shape, Precision weights, Precision kv) {
  PluginModelOptions options;
  options.weight_precision = weights;
  options.kv_precision = kv;
  options.seed = 5;
  options.threads = 2;
  return open_plugin(PluginKind::cuda_emulated).random_model(shape, options);
}

std::vector<std::int32_t> numbered_text(std::uint64_t seed, int tokens, int vocab) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < tokens; ++i)
    ids.push_back(static_cast<std::int32_t>((seed * 7919 + static_cast<std::uint64_t>(i) * 104729) %
                                            static_cast<std::uint64_t>(vocab)));
  return ids;
}

/// Logits of one step after another: two prompts in chunks beside each other, then their decodes, then the
/// first sequence swapped out and back.
std::vector<std::vector<float>> scripted(DeviceModel& model, std::int32_t block_tokens) {
  DecoderOptions options;
  options.block_tokens = block_tokens;
  options.kv_blocks = 512 / block_tokens;
  options.host_blocks = 256 / block_tokens;
  options.tokens_max = 256;
  options.rows = 64;
  options.sequences = 4;
  DecoderDriver driver(model, options);
  const int vocab = model.shape().vocab;
  const auto first = numbered_text(1, 90, vocab), second = numbered_text(2, 60, vocab);
  std::vector<std::vector<float>> logits;
  const auto step = [&] {
    for (auto& row : driver.run()) logits.push_back(std::move(row));
  };
  driver.add(Slot{0}, std::span(first).first(50), 0);
  step();
  driver.add(Slot{1}, std::span(second).first(33), 0);
  driver.add(Slot{0}, std::span(first).subspan(50, 1), 50);
  step();
  for (std::size_t i = 0; i < 6; ++i) {
    driver.add(Slot{0}, std::span(first).subspan(51 + i, 1), static_cast<std::int32_t>(51 + i));
    driver.add(Slot{1}, std::span(second).subspan(33 + i, 1), static_cast<std::int32_t>(33 + i));
    step();
  }
  driver.swap_out(Slot{0}, 57);
  driver.add(Slot{1}, std::span(second).subspan(39, 3), 39);
  step();
  driver.swap_in(Slot{0}, 57);
  driver.add(Slot{0}, std::span(first).subspan(57, 20), 57);
  step();
  driver.add(Slot{0}, std::span(first).subspan(77, 1), 77);
  step();
  return logits;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
  return most;
}

std::size_t argmax(const std::vector<float>& row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

double margin(const std::vector<float>& row) {
  std::vector<float> sorted = row;
  std::sort(sorted.begin(), sorted.end());
  return double{sorted.back()} - double{sorted[sorted.size() - 2]};
}

void check_alike(const std::vector<std::vector<float>>& found,
                 const std::vector<std::vector<float>>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("row " << i << " distance " << farthest(found[i], expected[i]) << " margin " << margin(expected[i]));
    CHECK(farthest(found[i], expected[i]) < tolerance);
    if (margin(expected[i]) > 2 * tolerance) CHECK(argmax(found[i]) == argmax(expected[i]));
  }
}

}  // namespace

TEST_CASE("teacher-forced logits of the emulated CUDA backend are those of the CPU", "[unit]") {
  const std::string change = GENERATE("", "bias", "tied");
  CAPTURE(change);
  const ModelShape shape = grouped_shape(change);
  CpuModel exact(shape, ElementType::f32, 2, 5);
  const auto expected = scripted(exact, 16);
  check_alike(scripted(*emulated(shape, Precision::f32, Precision::f32), 16), expected, 2e-4);
  check_alike(scripted(*emulated(shape, Precision::bf16, Precision::bf16), 16), expected, 0.15);
}

TEST_CASE("narrow weights and narrow keys and values stay near the CPU's logits", "[unit]") {
  const ModelShape shape = grouped_shape();
  CpuModel exact(shape, ElementType::f32, 2, 5);
  const auto expected = scripted(exact, 16);
  check_alike(scripted(*emulated(shape, Precision::int8, Precision::bf16), 32), expected, 0.2);
  check_alike(scripted(*emulated(shape, Precision::bf16, Precision::int8), 16), expected, 0.2);
  check_alike(scripted(*emulated(shape, Precision::bf16, Precision::fp8), 48), expected, 0.4);
}

TEST_CASE("a free-running f32 model answers the same on the CPU and on the emulated device", "[live]") {
  const ModelShape shape = testing::shipped_shape("tiny");
  CpuModel cpu(shape, ElementType::f32, 2, 5);
  const auto device = emulated(shape, Precision::f32, Precision::f32);
  const Scenario scenario = testing::busy_scenario("vllm-v1", 1, 3, true, false, 24);
  std::map<std::uint64_t, std::vector<std::int32_t>> answers[2];
  DeviceModel* const models[] = {&cpu, device.get()};
  for (int i = 0; i < 2; ++i)
    run_live(scenario, *models[i], nullptr, nullptr, [&](RequestId id, std::span<const std::int32_t> tokens) {
      answers[i][static_cast<std::uint64_t>(id)].assign(tokens.begin(), tokens.end());
    });
  CHECK(answers[0].size() == 24);
  CHECK(answers[0] == answers[1]);
}

TEST_CASE("every preset replays equal on the emulated CUDA backend, by both tests", "[live]") {
  const auto device = emulated(testing::shipped_shape("tiny"), Precision::bf16, Precision::bf16);
  for (const std::string preset : {"vllm-v1", "sarathi", "vllm-v0", "orca", "static"})
    for (const int depth : {0, 1}) {
      INFO(preset << " depth " << depth);
      testing::check_replays(testing::busy_scenario(preset, depth, 1, false, false, 10), *device);
    }
  testing::check_replays(testing::busy_scenario("vllm-v1", 1, 9, true, false, 20), *device);
  testing::check_replays(testing::busy_scenario("vllm-v0", 0, 9, false, true, 20), *device);
}

}  // namespace foretoken
#endif

#include "models/device.hpp"

#include "models/deployment.hpp"
#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

TEST_CASE("every shipped device names its source and survives writing and reading") {
  const std::vector<std::string> names = json_names(kDataFolder + "/devices");
  CHECK(names == std::vector<std::string>{"a100-80", "h100-sxm", "h200", "l40s"});
  for (const std::string& name : names) {
    const DeviceSheet device = find_device(name, kDataFolder);
    CHECK(device.source.size() > 20);
    CHECK(peak_flops(device, Precision::bf16) > 1e14);
    CHECK(device_from_json(device_to_json(device), name) == device);
  }
  CHECK_THROWS_WITH(find_device("h100", kDataFolder), Catch::Matchers::Contains("h100-sxm"));
}

TEST_CASE("a format that a device lacks runs at the peak of a wider one") {
  const DeviceSheet a100 = find_device("a100-80", kDataFolder);
  CHECK(peak_flops(a100, Precision::fp8) == peak_flops(a100, Precision::bf16));
  DeviceSheet cpu;
  cpu.peak_flops_per_s = {4e11};
  CHECK(peak_flops(cpu, Precision::bf16) == 4e11);
  CHECK(peak_flops({}, Precision::bf16) == 0);
}

TEST_CASE("bandwidth depends on the working set between measured sizes") {
  DeviceSheet device;
  device.bandwidth_bytes_per_s = 5;
  CHECK(bandwidth_at(device, 1e6) == 5);
  device.bandwidth_by_working_set = {{1e6, 300}, {1e8, 100}};
  CHECK(bandwidth_at(device, 10) == 300);
  CHECK(bandwidth_at(device, 1e7) == Approx(200));
  CHECK(bandwidth_at(device, 1e12) == 100);
}

TEST_CASE("a device sheet with an unknown key or falling sizes is refused") {
  CHECK_THROWS_WITH(device_from_json(Json::parse(R"({"bandwith_bytes_per_s": 1})", "d"), "d"),
                    Catch::Matchers::Contains("bandwidth_bytes_per_s"));
  CHECK_THROWS_AS(device_from_json(Json::parse(R"({"bandwidth_by_working_set": [
    {"working_set_bytes": 2, "bandwidth_bytes_per_s": 1},
    {"working_set_bytes": 1, "bandwidth_bytes_per_s": 1}]})",
                                               "d"),
                                   "d"),
                  InputError);
}

TEST_CASE("a deployment's pool is what weights, activations and runtime leave", "[golden]") {
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  const Deployment deployment = plan_deployment(shape, find_device("h100-sxm", kDataFolder), {});
  CHECK(deployment.weight_bytes == 2.0 * 8030261248);
  CHECK(deployment.kv_bytes_per_block == 16 * 131072);
  // 2048 x 2 x (4 x 4096 + 3 x 14336 + 48 x 128) + 256 x 128256 x 4 bytes.
  CHECK(deployment.activation_bytes == 399769600.0);
  // (0.9 x 85,520,809,984 - 16,060,522,496 - 399,769,600 - 1.5e9) / 2,097,152, rounded down.
  CHECK(deployment.blocks_total == 28137);
}

TEST_CASE("what does not fit is refused with what is missing") {
  using Catch::Matchers::Contains;
  const ModelShape shape = find_shape("llama-3.1-70b", kDataFolder);
  const DeviceSheet h100 = find_device("h100-sxm", kDataFolder);
  CHECK_THROWS_WITH(plan_deployment(shape, h100, {}), Contains("131 GiB for weights") && Contains("missing"));
  DeploymentOptions options;
  options.tensor_parallel = 3;
  CHECK_THROWS_AS(plan_deployment(shape, h100, options), InfeasibleError);
  options.tensor_parallel = 4;
  CHECK(plan_deployment(shape, h100, options).blocks_total > 1000);
  CHECK_THROWS_AS(plan_deployment(shape, DeviceSheet{}, {}), InputError);
}

TEST_CASE("sharding replicates key-value heads only where there are too few") {
  const ModelShape shape = find_shape("llama-3.1-70b", kDataFolder);
  CHECK(shard_shape(shape, 8).kv_heads == 1);
  CHECK(shard_shape(shape, 16).kv_heads == 1);
  CHECK(shard_shape(shape, 4).heads == 16);
  CHECK(shard_shape(shape, 1) == shape);
  CHECK_THROWS_AS(shard_shape(shape, 3), InfeasibleError);
}

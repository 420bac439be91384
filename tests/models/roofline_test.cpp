#include "models/cost.hpp"
#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

RooflineOptions ideal() {
  RooflineOptions options;
  options.flops_efficiency = options.bandwidth_efficiency = 1.0;
  options.step_fixed_us = options.layer_fixed_us = 0;
  return options;
}

double milliseconds(std::int64_t duration_ps) { return static_cast<double>(duration_ps) / 1e9; }

}  // namespace

// By hand, Llama-3.1-8B in bf16 on 3.35 TB/s and 989 TFLOP/s. A layer's products have 4096 x (2 x 4096 + 2
// x 1024 + 3 x 14336) = 218,103,808 weights; 32 layers, 32 x 8192 + 4096 norm weights and a head of 128256
// x 4096 make 7,504,924,672, or 15.0098 GB: 4.48055 ms. One token moves 32 x (16 x 4096 + 6 x 14336) =
// 4,849,664 bytes: 0.00145 ms. A KV token is 131,072 bytes: 39.126 ns.
TEST_CASE("roofline of llama-3.1-8b on h100 equals the sums by hand", "[golden]") {
  const auto cost = make_roofline_cost(find_shape("llama-3.1-8b", kDataFolder),
                                       find_device("h100-sxm", kDataFolder), ideal());
  CHECK(milliseconds(cost->step_ps(decodes(1, 0).features())) ==
        Approx(4.48055 + 0.00145 + 3.9126e-5).epsilon(1e-5));
  // 64 contexts of 1000 and their own tokens: 64,064 KV tokens are 2.50655 ms; activations 64 x 1.44766 us.
  CHECK(milliseconds(cost->step_ps(decodes(64, 1000).features())) ==
        Approx(4.48055 + 0.092650 + 2.50655).epsilon(1e-5));
  // 2048 tokens: 2 x 6,979,321,856 x 2048 FLOPs take 28.9053 ms, activations 2.96480 ms, the head is
  // streamed in 0.313634 ms, and 2048 x 2049 / 2 pairs of 524,288 FLOPs take 1.1123 ms.
  CHECK(milliseconds(cost->step_ps(prefill(2048, 0, true).features())) ==
        Approx(28.9053 + 2.96480 + 0.313634 + 1.1123).epsilon(1e-4));
  CHECK(cost->grade() == Grade::roofline);
}

TEST_CASE("two devices halve the streaming and pay for all-reduces", "[golden]") {
  RooflineOptions options = ideal();
  options.tensor_parallel = 2;
  const auto cost = make_roofline_cost(find_shape("llama-3.1-8b", kDataFolder),
                                       find_device("h100-sxm", kDataFolder), options);
  // Half the products and head (7.50466e9 weights) and all norms (266,240), 2 bytes each: 2.240355 ms; 64
  // all-reduces of 8 us: 0.512 ms; activations 32 x (65536 + 6 x 7168) bytes: 0.00103688 ms; 64 x 8192
  // bytes over 450 GB/s: 0.00116508 ms; half a KV token: 1.9563e-5 ms.
  CHECK(milliseconds(cost->step_ps(decodes(1, 0).features())) ==
        Approx(2.240355 + 0.512 + 0.00103688 + 0.00116508 + 1.9563e-5).epsilon(1e-5));
}

TEST_CASE("a narrower weight format streams faster and computes at its own peak") {
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  const DeviceSheet device = find_device("h100-sxm", kDataFolder);
  RooflineOptions options = ideal();
  const auto wide = make_roofline_cost(shape, device, options);
  options.weight_precision = Precision::fp8;
  const auto narrow = make_roofline_cost(shape, device, options);
  const double decode_ratio = static_cast<double>(narrow->step_ps(decodes(1, 0).features())) /
                              static_cast<double>(wide->step_ps(decodes(1, 0).features()));
  CHECK(decode_ratio == Approx(0.535).margin(0.005));
  CHECK(narrow->step_ps(prefill(4096, 0, true).features()) <
        wide->step_ps(prefill(4096, 0, true).features()));
}

TEST_CASE("a roofline refuses what it cannot know or split") {
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  DeviceSheet device = find_device("h100-sxm", kDataFolder);
  RooflineOptions options;
  options.tensor_parallel = 3;
  CHECK_THROWS_AS(make_roofline_cost(shape, device, options), InfeasibleError);
  options.tensor_parallel = 1;
  device.bandwidth_bytes_per_s = 0;
  CHECK_THROWS_WITH(make_roofline_cost(shape, device, options), Catch::Matchers::Contains("bandwidth"));
}

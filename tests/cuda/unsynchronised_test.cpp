#include <cmath>

#include "kernels/cuda/device.hpp"

// The kernel once more, under another name and without its barriers: what its tests must find.
#define __syncthreads() static_cast<void>(0)
#define rms_norm unsynchronised_rms_norm
#include "kernels/cuda/rms_norm.cu"
#undef rms_norm
#undef __syncthreads

#include "kernels/cuda/simt/races.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/device_fixture.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::test;

TEST_CASE("a norm without its barrier is wrong in some order, and a race in all") {
  Numbers draw{1};
  const reference::Matrix x = draw.matrix(1, 1024, ElementType::f32);
  const std::vector<double> weight(1024, 1.0);
  const std::vector<float> weights(1024, 1.0F);
  int wrong = 0;
  in_all_orders([&] {
    DeviceMatrix residual(ElementType::f32, x, 1024), out(ElementType::f32, 1, 1024, 1024);
    const std::string fault = fault_of([&] {
      cuda::unsynchronised_rms_norm({1, 1024, residual.bytes.as<float>(), 1024, nullptr, 0, weights.data(),
                                     1e-5F, out.data(), 1024, ElementType::f32, nullptr},
                                    nullptr);
    });
    CHECK(fault.empty() != cuda::simt::looks_for_races());
    wrong += out.excess(reference::rms_norm(x, weight, 1e-5F), 1e-6, 3e-6) > 0 ? 1 : 0;
  });
  CHECK(wrong > 0);
}

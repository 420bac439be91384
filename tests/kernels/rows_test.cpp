#include <algorithm>
#include <atomic>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/kernels/kernel_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cpu;
using namespace foretoken::test;
using reference::Matrix;

TEST_CASE("norm, SiLU and argmax agree with their double twins and never read padding", "[property]") {
  for (const Isa isa : available_isas())
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      Numbers draw{seed};
      const int rows = draw.whole(1, 9), dim = draw.whole(1, 200);
      const Matrix x = draw.matrix(rows, dim, ElementType::f32),
                   up = draw.matrix(rows, dim, ElementType::f32);
      Stored in(ElementType::f32, x, dim + 7), in_up(ElementType::f32, up, dim + 7);
      const ElementType type = seed % 2 == 0 ? ElementType::f32 : ElementType::bf16;
      const double relative = type == ElementType::f32 ? 1e-5 : 5e-3;
      Stored out(type, rows, dim + 3);
      std::vector<double> weight;
      std::vector<float> weights;
      for (int i = 0; i < dim; ++i) weight.push_back(weights.emplace_back(draw.number(ElementType::f32)));
      RmsNormArgs norm{rows,  dim,        in.floats.data(), in.stride, weights.data(),
                       1e-5F, out.data(), out.stride,       type,      nullptr};
      on_team(draw.whole(1, 3), [&](Share share) { kernels(isa).rms_norm(norm, share); });
      INFO(isa_name(isa) << " seed " << seed);
      CHECK(excess(out, reference::rms_norm(x, weight, 1e-5F), 1e-6, relative) <= 0);
      SiluMulArgs silu{rows,      dim,        in.floats.data(), in_up.floats.data(),
                       in.stride, out.data(), out.stride,       type};
      on_team(draw.whole(1, 3), [&](Share share) { kernels(isa).silu_mul(silu, share); });
      CHECK(excess(out, reference::silu_mul(x, up), 1e-6, relative) <= 0);
      CHECK(std::isnan(out.at(0, dim)));
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows));
      kernels(isa).argmax({rows, dim, in.floats.data(), in.stride, tokens.data()}, {});
      CHECK(std::vector<int>(tokens.begin(), tokens.end()) == reference::argmax(x));
    }
}

TEST_CASE("conversions round to nearest even as the scalar does, and embedding copies rows", "[property]") {
  for (const Isa isa : available_isas()) {
    Numbers draw{11};
    const Matrix m = draw.matrix(1, 1003, ElementType::f32);
    std::vector<float> floats(m.values.begin(), m.values.end()), back(floats.size());
    std::vector<Bf16> halves(floats.size());
    on_team(3, [&](Share share) { kernels(isa).floats_to_bf16(floats.data(), halves.data(), 1003, share); });
    on_team(2, [&](Share share) { kernels(isa).bf16_to_floats(halves.data(), back.data(), 1003, share); });
    bool equal = true;
    for (std::size_t i = 0; i < floats.size(); ++i) equal &= back[i] == to_float(to_bf16(floats[i]));
    CHECK(equal);
    const std::int32_t tokens[] = {3, -1, 0};
    std::vector<float> rows(3 * 100, 5.0F);
    kernels(isa).embed({3, 100, tokens, halves.data(), ElementType::bf16, rows.data(), 100}, {});
    CHECK(std::equal(rows.begin(), rows.begin() + 100, back.begin() + 300));
    CHECK(std::all_of(rows.begin() + 100, rows.begin() + 200, [](float x) { return x == 0; }));
  }
}

TEST_CASE("a team meets at its barriers, and launch lets the caller do something else first", "[unit]") {
  for (int threads = 1; threads <= 3; ++threads) {
    ThreadPool pool(threads);
    std::vector<int> seen(static_cast<std::size_t>(threads));
    std::atomic<int> wrong{0};
    const auto work = [&](const Team& team) {
      for (int phase = 1; phase <= 20; ++phase) {
        seen[static_cast<std::size_t>(team.share.index)] = phase;
        team.barrier();
        for (const int other : seen) wrong += other != phase;
        team.barrier();
      }
    };
    for (int call = 0; call < 20; ++call) {
      pool.launch(work);
      pool.join();
    }
    CHECK(wrong == 0);
  }
}

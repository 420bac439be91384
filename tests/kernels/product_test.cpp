#include <algorithm>
#include <cstring>

#include "tests/catch.hpp"
#include "tests/kernels/kernel_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cpu;
using namespace foretoken::test;
using reference::Matrix;

namespace {

/// Packs w, multiplies, and returns y with NaN in every place that should not be written.
Stored multiply(Isa isa, ElementType type, const Matrix& x, const Matrix& w, int threads) {
  Buffer packed(packed_bytes(type, w.rows, w.columns));
  const PackedMatrix weights{packed.data(), type, w.rows, w.columns};
  std::vector<float> rows(w.values.begin(), w.values.end());
  pack_rows(weights, rows.data(), ElementType::f32, w.rows, Columns::stacked);
  Stored input(activation_type(isa, type), x, activation_stride(x.columns) + 3);
  Stored output(ElementType::f32, x.rows, w.rows + 5);
  ProductArgs args;
  args.weights = weights;
  args.rows = x.rows;
  args.x = input.data();
  args.x_stride = input.stride;
  args.y = output.data();
  args.y_stride = output.stride;
  on_team(threads, [&](Share share) { kernels(isa).product(args, share); });
  return output;
}

}  // namespace

TEST_CASE("products of every ISA agree with the double twin over odd shapes and teams", "[property]") {
  for (const Isa isa : available_isas())
    for (const ElementType type : {ElementType::f32, ElementType::bf16})
      for (std::uint64_t seed = 0; seed < 30; ++seed) {
        Numbers draw{seed};
        const int rows = draw.whole(1, 40), columns = draw.whole(1, 150), depth = draw.whole(1, 130);
        const Matrix x = draw.matrix(rows, depth, type), w = draw.matrix(columns, depth, type);
        const Stored y = multiply(isa, type, x, w, draw.whole(1, 3));
        INFO(isa_name(isa) << " seed " << seed << ' ' << rows << 'x' << columns << 'x' << depth);
        CHECK(excess(y, reference::product(x, w), 1e-6 * depth, 1e-5) <= 0);
        CHECK(std::isnan(y.at(0, columns)));
      }
}

TEST_CASE("a row's product does not depend, in any bit, on its batch mates or the team", "[property]") {
  Numbers draw{7};
  const Matrix all = draw.matrix(29, 77, ElementType::bf16), w = draw.matrix(131, 77, ElementType::bf16);
  for (const Isa isa : available_isas())
    for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
      const Stored whole = multiply(isa, type, all, w, 2);
      for (int rows = 1; rows <= 28; ++rows) {
        Matrix some(rows, 77);
        std::copy_n(all.values.begin(), some.values.size(), some.values.begin());
        const Stored part = multiply(isa, type, some, w, 1 + rows % 3);
        bool equal = true;
        for (int r = 0; r < rows; ++r)
          equal &= std::memcmp(&part.floats[part.index(r, 0)], &whole.floats[whole.index(r, 0)],
                               131 * sizeof(float)) == 0;
        INFO(isa_name(isa) << " rows " << rows);
        CHECK(equal);
      }
    }
}

TEST_CASE("the gated epilogue and the residual one agree with the double twin", "[property]") {
  for (const Isa isa : available_isas())
    for (const ElementType type : {ElementType::f32, ElementType::bf16})
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        Numbers draw{seed};
        const int rows = draw.whole(1, 20), features = draw.whole(1, 70), depth = 2 * draw.whole(1, 40);
        const Matrix x = draw.matrix(rows, depth, type);
        const Matrix gate = draw.matrix(features, depth, type), up = draw.matrix(features, depth, type);
        const int columns = gate_up_columns(features);
        Buffer packed(packed_bytes(type, columns, depth));
        const PackedMatrix weights{packed.data(), type, columns, depth};
        const std::vector<float> gates(gate.values.begin(), gate.values.end()),
            ups(up.values.begin(), up.values.end());
        pack_rows(weights, gates.data(), ElementType::f32, features, Columns::gate);
        pack_rows(weights, ups.data(), ElementType::f32, features, Columns::up);
        Stored input(activation_type(isa, type), x, depth), output(input.type, rows, features + 3);
        ProductArgs args{weights,       rows,          input.data(),       depth,
                         output.data(), output.stride, Epilogue::silu_mul, output.type,
                         features};
        on_team(2, [&](Share share) { kernels(isa).product(args, share); });
        const Matrix want = reference::silu_mul(reference::product(x, gate), reference::product(x, up));
        INFO(isa_name(isa) << " seed " << seed);
        CHECK(excess(output, want, 1e-4, output.type == ElementType::bf16 ? 5e-3 : 1e-4) <= 0);
        CHECK(std::isnan(output.at(0, features)));

        Stored sum(ElementType::f32, Matrix(rows, columns), columns);
        args.epilogue = Epilogue::add;
        args.y = sum.data();
        args.y_stride = columns;
        for (int i = 0; i < 2; ++i) on_team(1, [&](Share share) { kernels(isa).product(args, share); });
        Matrix twice(rows, std::min(16, features));
        const Matrix once = reference::product(x, gate);
        for (int r = 0; r < rows; ++r)
          for (int c = 0; c < twice.columns; ++c) twice.at(r, c) = 2 * once.at(r, c);
        CHECK(excess(sum, twice, 1e-4, 1e-5) <= 0);
      }
}

TEST_CASE("seeded fault: a product that loses the last pair of the depth is noticed", "[property]") {
  Numbers draw{3};
  const Matrix x = draw.matrix(5, 64, ElementType::bf16), w = draw.matrix(40, 64, ElementType::bf16);
  Matrix short_x = x;
  for (int r = 0; r < 5; ++r) short_x.at(r, 63) = short_x.at(r, 62) = 0;
  CHECK(excess(multiply(active_isa(), ElementType::bf16, short_x, w, 2), reference::product(x, w), 1e-4,
               1e-5) > 0);
}

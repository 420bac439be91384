#include "kernels/cuda/simt/product_host.hpp"

#include <algorithm>
#include <vector>

namespace foretoken::cuda::simt {
namespace {

// Sums that fit the vector registers of any x86-64: four rows of sixteen columns.
constexpr int kColumns = 16;
constexpr int kRows = 4;

float element(const void* data, ElementType type, std::int64_t at) {
  return type == ElementType::f32 ? static_cast<const float*>(data)[at]
                                  : to_float(static_cast<const Bf16*>(data)[at]);
}

/// All rows of x one below the other, filled up with zeros to whole groups of rows.
std::vector<float> widened_rows(const ProductArgs& args) {
  const int rows = (args.rows + kRows - 1) / kRows * kRows;
  std::vector<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(args.depth));
  float* out = x.data();
  for (int r = 0; r < args.rows; ++r)
    for (int k = 0; k < args.depth; ++k) *out++ = element(args.x, args.x_type, r * args.x_stride + k);
  return x;
}

/// panel[k][c] = W[begin + c][k], zeros beyond the last column.
void fill_panel(const ProductArgs& args, int begin, std::vector<float>& panel) {
  std::fill(panel.begin(), panel.end(), 0.0F);
  for (int c = 0; c < std::min(kColumns, args.columns - begin); ++c) {
    const std::int64_t row = std::int64_t{begin + c} * args.depth;
    float* out = panel.data() + c;
    for (int k = 0; k < args.depth; ++k, out += kColumns) {
      switch (args.weight_type) {
        case WeightType::f32: *out = static_cast<const float*>(args.weights)[row + k]; break;
        case WeightType::bf16: *out = to_float(static_cast<const Bf16*>(args.weights)[row + k]); break;
        case WeightType::int8: *out = static_cast<const std::int8_t*>(args.weights)[row + k]; break;
      }
    }
  }
}

void store(const ProductArgs& args, int row, int begin, const float (&sums)[kColumns]) {
  for (int c = 0; c < std::min(kColumns, args.columns - begin); ++c) {
    const float sum = args.scales != nullptr ? sums[c] * args.scales[begin + c] : sums[c];
    const std::int64_t at = row * args.y_stride + begin + c;
    if (args.y_type == ElementType::f32) {
      static_cast<float*>(args.y)[at] = sum;
    } else {
      static_cast<Bf16*>(args.y)[at] = to_bf16(sum);
    }
  }
}

/// Four rows of x, `depth` apart, against a panel.
void multiply(const float* x, const float* panel, std::size_t depth, float (&sums)[kRows][kColumns]) {
  for (auto& row : sums) std::fill(std::begin(row), std::end(row), 0.0F);
  for (std::size_t k = 0; k < depth; ++k)
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t c = 0; c < kColumns; ++c) sums[r][c] += x[r * depth + k] * panel[k * kColumns + c];
}

}  // namespace

void product_host(const ProductArgs& args) {
  require(product_simple_supports(args.rows, args.columns, args.depth), "product_host",
          "a depth of at least one");
  if (args.rows == 0 || args.columns == 0) return;
  const auto depth = static_cast<std::size_t>(args.depth);
  const std::vector<float> x = widened_rows(args);
  std::vector<float> panel(depth * kColumns);
  float sums[kRows][kColumns];
  for (int begin = 0; begin < args.columns; begin += kColumns) {
    fill_panel(args, begin, panel);
    for (int row = 0; row < args.rows; row += kRows) {
      multiply(x.data() + static_cast<std::size_t>(row) * depth, panel.data(), depth, sums);
      for (int r = row; r < std::min(row + kRows, args.rows); ++r) store(args, r, begin, sums[r - row]);
    }
  }
}

}  // namespace foretoken::cuda::simt

#pragma once
#include <cstdint>
#include <vector>

#include "kernels/cuda/product_simple.hpp"
#include "kernels/cuda/skinny_plan.hpp"
#include "kernels/reference/reference.hpp"
#include "tests/cuda/simt_fixture.hpp"
#include "tests/kernels/kernel_fixture.hpp"

namespace foretoken::test {

/// A weight matrix without gaps, in memory of exactly its size.
struct StoredWeights {
  cuda::WeightType type;
  std::vector<float> floats;
  std::vector<Bf16> halves;
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;

  /// Stores `w`; int8 weights take its numbers as they are, whole ones in [-127, 127], with the scales given.
  StoredWeights(cuda::WeightType type_, const reference::Matrix& w, std::vector<float> scales_ = {})
      : type(type_), scales(std::move(scales_)) {
    for (const double value : w.values) {
      if (type == cuda::WeightType::f32) floats.push_back(static_cast<float>(value));
      if (type == cuda::WeightType::bf16) halves.push_back(to_bf16(static_cast<float>(value)));
      if (type == cuda::WeightType::int8) bytes.push_back(static_cast<std::int8_t>(value));
    }
  }
  /// The first element.
  const void* data() const {
    if (type == cuda::WeightType::f32) return floats.data();
    return type == cuda::WeightType::bf16 ? static_cast<const void*>(halves.data()) : bytes.data();
  }
  /// The scales, or null.
  const float* scale_data() const { return scales.empty() ? nullptr : scales.data(); }
};

/// Whole numbers in [-127, 127], every extreme among them.
inline reference::Matrix whole_weights(Numbers& draw, int columns, int depth) {
  reference::Matrix w(columns, depth);
  for (double& x : w.values) x = draw.whole(-127, 127);
  return w;
}

/// `columns` scales in (0, 1].
inline std::vector<float> drawn_scales(Numbers& draw, int columns) {
  std::vector<float> scales;
  for (int n = 0; n < columns; ++n) scales.push_back(static_cast<float>(draw.whole(1, 1000)) / 1000.0F);
  return scales;
}

/// x w^T with each column times its scale.
inline reference::Matrix scaled_product(const reference::Matrix& x, const reference::Matrix& w,
                                        const std::vector<float>& scales) {
  reference::Matrix y = reference::product(x, w);
  for (int m = 0; m < y.rows && !scales.empty(); ++m)
    for (int n = 0; n < y.columns; ++n)
      y.at(m, n) *= static_cast<double>(scales[static_cast<std::size_t>(n)]);
  return y;
}

/// The largest |sum of |x w|| over y's elements: what rounding errors of sums are proportional to.
inline double magnitude(const reference::Matrix& x, const reference::Matrix& w,
                        const std::vector<float>& scales) {
  reference::Matrix a = x, b = w;
  for (double& value : a.values) value = std::abs(value);
  for (double& value : b.values) value = std::abs(value);
  double largest = 0;
  for (const double value : scaled_product(a, b, scales).values) largest = std::max(largest, value);
  return largest;
}

/// Whether the first `rows` rows of two outputs are the same bits.
inline bool same_bits(const Stored& a, const Stored& b, int rows, int columns) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      const std::size_t at = a.index(r, c), other = b.index(r, c);
      const bool same = a.type == ElementType::f32
                            ? std::memcmp(&a.floats[at], &b.floats[other], sizeof(float)) == 0
                            : a.halves[at].bits == b.halves[other].bits;
      if (!same) return false;
    }
  return true;
}

/// Whether everything outside the first rows x columns is still NaN.
inline bool is_untouched_outside(const Stored& y, int rows, int columns, int stored_rows) {
  for (int r = 0; r < stored_rows; ++r)
    for (int c = 0; c < static_cast<int>(y.stride); ++c)
      if ((r >= rows || c >= columns) && !std::isnan(y.at(r, c))) return false;
  return true;
}

/// What `rows` bf16 or f32 results may differ by from exact ones: rounding of f32 sums of the given
/// magnitude, and of the result itself.
inline double excess_of_product(const Stored& y, const reference::Matrix& want, double sums_magnitude,
                                int depth) {
  const double relative = y.type == ElementType::bf16 ? 1.0 / 256 : 1e-6;
  return excess(y, want, 6e-8 * sums_magnitude * (4 + 0.05 * depth) + 1e-30, relative);
}

/// A device on which a product of this depth needs `slices` slices, dealt over few blocks.
inline cuda::ProductDevice narrow_device(int slice_depth, int element_bytes, int multiprocessors) {
  return {multiprocessors, cuda::detail::skinny_shared_bytes(slice_depth, 128 / element_bytes, 2)};
}

/// A workspace as a product leaves it: counters zero, and sums of another, here NaN.
inline std::vector<float> used_workspace(std::size_t bytes) {
  std::vector<float> words(bytes / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  if (!words.empty()) std::fill_n(words.begin(), cuda::detail::kWorkspaceCounters, 0.0F);
  return words;
}

}  // namespace foretoken::test

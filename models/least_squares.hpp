#pragma once
#include <cstddef>
#include <vector>

namespace foretoken {

/// Weighted least squares over a few hundred non-negative unknowns, kept as normal equations.
class LeastSquares {
 public:
  /// Starts without rows.
  explicit LeastSquares(std::size_t unknowns);
  /// Adds the wish `row . x = target` with that weight. `row` has one entry per unknown.
  void add(const std::vector<double>& row, double target, double weight);
  /// Size of an unknown's influence so far: the root of its weighted sum of squares.
  [[nodiscard]] double influence(std::size_t unknown) const;
  /// The x >= 0 with the least weighted sum of squared residuals (Lawson and Hanson 1974, chapter 23, on
  /// the normal equations). Unknowns without influence come out as 0; a ridge of 1e-9 of each unknown's
  /// influence breaks ties.
  [[nodiscard]] std::vector<double> solve_nonnegative() const;

 private:
  std::size_t unknowns_;
  std::vector<double> gram_;  // Row-major, symmetric.
  std::vector<double> right_;
};

}  // namespace foretoken

#include "models/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace foretoken {
namespace {

constexpr double kRidge = 1e-9;

/// The normal equations scaled to a unit diagonal, so that one tolerance fits all unknowns.
struct Scaled {
  std::size_t size = 0;
  std::vector<double> gram;
  std::vector<double> right;
  std::vector<double> scale;
};

/// Solves the equations restricted to `active` by Cholesky; entries outside are 0.
std::vector<double> solve_active(const Scaled& system, const std::vector<std::size_t>& active) {
  const std::size_t count = active.size();
  std::vector<double> lower(count * count, 0.0);
  std::vector<double> solution(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = system.gram[active[i] * system.size + active[j]];
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i * count + k] * lower[j * count + k];
      lower[i * count + j] = i == j ? std::sqrt(std::max(sum, kRidge)) : sum / lower[j * count + j];
    }
    double sum = system.right[active[i]];
    for (std::size_t k = 0; k < i; ++k) sum -= lower[i * count + k] * solution[k];
    solution[i] = sum / lower[i * count + i];
  }
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t k = i + 1; k < count; ++k) solution[i] -= lower[k * count + i] * solution[k];
    solution[i] /= lower[i * count + i];
  }
  std::vector<double> full(system.size, 0.0);
  for (std::size_t i = 0; i < count; ++i) full[active[i]] = solution[i];
  return full;
}

/// How fast the residual falls when an unknown grows.
double descent(const Scaled& system, const std::vector<double>& x, std::size_t unknown) {
  double value = system.right[unknown];
  for (std::size_t j = 0; j < system.size; ++j) value -= system.gram[unknown * system.size + j] * x[j];
  return value;
}

std::vector<std::size_t> positives(const std::vector<double>& x) {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] > 0) indices.push_back(i);
  return indices;
}

/// Moves from `x` towards `wish` until the first unknown hits zero; with no obstacle, all the way.
void step_towards(std::vector<double>& x, const std::vector<double>& wish) {
  double share = 1.0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (wish[i] <= 0 && x[i] > 0) share = std::min(share, x[i] / (x[i] - wish[i]));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool blocked = wish[i] <= 0 && x[i] > 0 && x[i] / (x[i] - wish[i]) <= share;
    x[i] = blocked ? 0.0 : std::max(0.0, x[i] + share * (wish[i] - x[i]));
  }
}

std::vector<double> solve_scaled(const Scaled& system) {
  std::vector<std::size_t> active;
  for (std::size_t i = 0; i < system.size; ++i)
    if (system.scale[i] > 0) active.push_back(i);
  // Dropping what comes out negative gives a start close to the optimum; the loop below makes it exact.
  std::vector<double> x = solve_active(system, active);
  for (std::vector<std::size_t> kept = positives(x); kept.size() < active.size(); kept = positives(x)) {
    active = kept;
    x = solve_active(system, active);
  }
  constexpr double kTolerance = 1e-10;
  for (std::size_t round = 0; round < 4 * system.size; ++round) {
    std::size_t best = system.size;
    double best_descent = kTolerance;
    for (std::size_t i = 0; i < system.size; ++i) {
      if (system.scale[i] == 0 || x[i] > 0) continue;
      const double value = descent(system, x, i);
      if (value > best_descent) best_descent = value, best = i;
    }
    if (best == system.size) break;
    active = positives(x);
    active.insert(std::lower_bound(active.begin(), active.end(), best), best);
    std::vector<double> wish = solve_active(system, active);
    if (wish[best] <= 0) break;
    while (positives(wish).size() < active.size()) {
      step_towards(x, wish);
      active = positives(x);
      wish = solve_active(system, active);
    }
    x = wish;
  }
  return x;
}

}  // namespace

LeastSquares::LeastSquares(std::size_t unknowns)
    : unknowns_(unknowns), gram_(unknowns * unknowns, 0.0), right_(unknowns, 0.0) {}

void LeastSquares::add(const std::vector<double>& row, double target, double weight) {
  FT_CHECK(row.size() == unknowns_, row.size(), unknowns_);
  std::vector<std::size_t> filled;
  for (std::size_t i = 0; i < unknowns_; ++i)
    if (row[i] != 0) filled.push_back(i);
  const double factor = weight * weight;
  for (const std::size_t i : filled) {
    right_[i] += factor * row[i] * target;
    for (const std::size_t j : filled) gram_[i * unknowns_ + j] += factor * row[i] * row[j];
  }
}

double LeastSquares::influence(std::size_t unknown) const {
  return std::sqrt(gram_[unknown * unknowns_ + unknown]);
}

std::vector<double> LeastSquares::solve_nonnegative() const {
  Scaled system{unknowns_, gram_, right_, std::vector<double>(unknowns_)};
  for (std::size_t i = 0; i < unknowns_; ++i) system.scale[i] = influence(i);
  for (std::size_t i = 0; i < unknowns_; ++i) {
    if (system.scale[i] == 0) continue;
    system.right[i] /= system.scale[i];
    for (std::size_t j = 0; j < unknowns_; ++j)
      if (system.scale[j] > 0) system.gram[i * unknowns_ + j] /= system.scale[i] * system.scale[j];
    system.gram[i * unknowns_ + i] += kRidge;
  }
  std::vector<double> x = solve_scaled(system);
  for (std::size_t i = 0; i < unknowns_; ++i)
    if (system.scale[i] > 0) x[i] /= system.scale[i];
  return x;
}

}  // namespace foretoken

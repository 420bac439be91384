#include "models/fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/fit_basis.hpp"
#include "models/least_squares.hpp"
#include "sim/base/check.hpp"

namespace foretoken {

KnotPlace place_among(const std::vector<std::int32_t>& knots, double value) {
  FT_CHECK(!knots.empty());
  if (value <= knots.front()) return {0, 0.0};
  if (value >= knots.back()) return {knots.size() - 1, 0.0};
  const auto above = std::upper_bound(knots.begin(), knots.end(), value);
  const auto low = static_cast<std::size_t>(above - knots.begin()) - 1;
  return {low, (value - knots[low]) / (knots[low + 1] - knots[low])};
}

std::vector<std::int32_t> thin_knots(std::vector<std::int32_t> values, std::int32_t dense_until,
                                     double ratio) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::vector<std::int32_t> kept;
  for (const std::int32_t value : values)
    if (value <= dense_until || kept.empty() || value >= ratio * kept.back()) kept.push_back(value);
  if (values.empty() || kept.back() == values.back()) return kept;
  // The largest replaces a neighbour that is too close rather than crowding it.
  if (kept.back() > dense_until && kept.size() > 1) kept.pop_back();
  kept.push_back(values.back());
  return kept;
}

namespace {

double interpolated(const std::vector<std::int32_t>& knots, const std::vector<double>& values, double at) {
  const KnotPlace place = place_among(knots, at);
  if (place.share == 0) return values[place.low];
  return values[place.low] + place.share * (values[place.low + 1] - values[place.low]);
}

std::int64_t rounded(double value_ps) { return std::llround(value_ps); }

/// Dense values up to the last knot, then the slope between the last knot and the first at most half as
/// large: two close knots would make a tail out of their noise.
Ramp dense_ramp(const std::vector<std::int32_t>& knots, const std::vector<double>& values) {
  Ramp ramp;
  ramp.values_ps.clear();
  for (std::int32_t count = 0; count <= knots.back(); ++count)
    ramp.values_ps.push_back(rounded(interpolated(knots, values, count)));
  std::size_t base = knots.size() - 1;
  while (base > 0 && 2 * knots[base] > knots.back()) --base;
  const double run = knots.back() - knots[base];
  ramp.tail_ps = run > 0 ? rounded(std::max(0.0, (values.back() - values[base]) / run)) : 0;
  return ramp;
}

}  // namespace

CostTables fitted_tables(const FittedCost& fit, const MeasuredRange& range) {
  CostTables tables;
  tables.range = range;
  tables.body = dense_ramp(fit.token_knots, fit.body_ps);
  tables.head = dense_ramp(fit.sampled_knots, fit.head_ps);
  const std::size_t segments = fit.context_knots.size();
  tables.context_knots.assign(fit.context_knots.begin(), fit.context_knots.end());
  for (const double pair : fit.pair_ps) tables.pair_ps.push_back(rounded(pair));
  tables.pair_ps.erase(tables.pair_ps.begin());
  if (!fit.decode_knots.empty()) {
    tables.decode = dense_ramp(fit.decode_knots, fit.decode_ps);
    tables.decode.values_ps.front() = 0;
  }
  tables.decode_slopes_ps.assign(segments, 0);
  tables.ragged_ps.assign(1, 0);
  for (std::int32_t decodes = 1; !fit.decode_knots.empty() && decodes <= fit.decode_knots.back(); ++decodes) {
    for (std::size_t k = 0; k < segments; ++k) {
      const KnotPlace place = place_among(fit.decode_knots, decodes);
      const double low = fit.decode_slope_ps[place.low * segments + k];
      const double high = place.share > 0 ? fit.decode_slope_ps[(place.low + 1) * segments + k] : low;
      tables.decode_slopes_ps.push_back(rounded(low + place.share * (high - low)));
    }
    tables.ragged_ps.push_back(rounded(interpolated(fit.decode_knots, fit.ragged_ps, decodes)));
  }
  tables.chunk_ps = rounded(fit.chunk_ps);
  tables.chunk_context_ps = rounded(fit.chunk_context_ps);
  tables.padded_token_ps = rounded(fit.padded_token_ps);
  tables.padded_row_ps = rounded(fit.padded_row_ps);
  tables.mixed_ps = rounded(fit.mixed_ps);
  tables.mixed_decode_ps = rounded(fit.mixed_decode_ps);
  return tables;
}

namespace {

constexpr int kRobustRounds = 4;
constexpr double kHuber = 2.5;
constexpr double kResidualScaleMin = 1e-3;
constexpr double kNeighbourWeight = 0.03;
constexpr double kHeadWeight = 0.03;

/// Wishes that matter only where samples are silent.
void add_priors(LeastSquares& system, const FitBasis& basis, double head_share) {
  std::vector<double> row(basis.size(), 0.0);
  const auto tie = [&](const std::pair<std::size_t, std::size_t>& pair) {
    const double influence = std::max(system.influence(pair.first), system.influence(pair.second));
    row[pair.first] = 1.0;
    row[pair.second] = -1.0;
    system.add(row, 0.0, kNeighbourWeight * influence);
    row[pair.first] = row[pair.second] = 0.0;
    return influence > 0;
  };
  // What samples determine spreads along the chain upwards, then downwards to where no sample was.
  std::vector<std::pair<std::size_t, std::size_t>> left;
  for (const auto& pair : basis.neighbours())
    if (!tie(pair)) left.push_back(pair);
  for (auto pair = left.rbegin(); pair != left.rend(); ++pair) tie(*pair);
  for (FitBasis::HeadAndBody& pair : basis.head_and_body()) {
    for (double& factor : pair.body) factor *= -head_share;
    pair.body[pair.head] = 1.0 - head_share;
    system.add(pair.body, 0.0, kHeadWeight * system.influence(pair.head));
  }
}

std::vector<double> relative_residuals(const std::vector<std::vector<double>>& rows,
                                       const std::vector<double>& x) {
  std::vector<double> residuals;
  for (const std::vector<double>& row : rows) {
    double predicted = 0;
    for (std::size_t i = 0; i < x.size(); ++i) predicted += row[i] * x[i];
    residuals.push_back(predicted - 1.0);
  }
  return residuals;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

FittedCost fit_cost(const std::vector<FitPoint>& points, double head_share) {
  const FitBasis basis(points);
  std::vector<std::vector<double>> rows;
  for (const FitPoint& point : points) {
    rows.push_back(basis.row(point.shape->features()));
    for (double& factor : rows.back()) factor /= point.duration_ps;
  }
  std::vector<double> trust(points.size(), 1.0);
  std::vector<double> x;
  for (int round = 0; round < kRobustRounds; ++round) {
    LeastSquares system(basis.size());
    for (std::size_t i = 0; i < points.size(); ++i)
      system.add(rows[i], 1.0, points[i].weight * std::sqrt(trust[i]));
    add_priors(system, basis, head_share);
    x = system.solve_nonnegative();
    const std::vector<double> residuals = relative_residuals(rows, x);
    std::vector<double> sizes;
    for (const double residual : residuals) sizes.push_back(std::abs(residual));
    const double limit = kHuber * std::max(kResidualScaleMin, 1.4826 * median(sizes));
    for (std::size_t i = 0; i < points.size(); ++i) trust[i] = sizes[i] > limit ? limit / sizes[i] : 1.0;
  }
  return basis.unpack(x);
}

}  // namespace foretoken

#pragma once
#include <vector>

#include "models/cost_tables.hpp"
#include "models/profile.hpp"

namespace foretoken {

/// A shape with the duration that a fit aims at.
struct FitPoint {
  const StepShape* shape = nullptr;  ///< What was run; owned elsewhere.
  double duration_ps = 0;            ///< Centre of its timings, above 0.
  double weight = 1;                 ///< Trust in that centre, 1 at most.
};

/// Fits the form of FittedCost to relative errors by non-negative least squares, in four rounds that weight
/// outlying shapes down (Huber). `head_share` is the LM head's share of all streamed weights: it decides
/// how body and head part what the points cannot tell apart.
[[nodiscard]] FittedCost fit_cost(const std::vector<FitPoint>& points, double head_share);

/// The fitted cost as dense integer tables: the one place where it is rounded.
[[nodiscard]] CostTables fitted_tables(const FittedCost& fit, const MeasuredRange& range);

/// Where a value lies between rising knots: `share` of the way from knot `low` to the next. Outside, the
/// end knot itself.
struct KnotPlace {
  std::size_t low = 0;  ///< Knot at or below the value.
  double share = 0;     ///< 0 at that knot, below 1.
};
/// The place of a value among at least one knot.
[[nodiscard]] KnotPlace place_among(const std::vector<std::int32_t>& knots, double value);

/// Rising distinct values, thinned: all up to `dense_until`, beyond it only those `ratio` times the last
/// one kept; the largest stays.
[[nodiscard]] std::vector<std::int32_t> thin_knots(std::vector<std::int32_t> values, std::int32_t dense_until,
                                                   double ratio);

}  // namespace foretoken

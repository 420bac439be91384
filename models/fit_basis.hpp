#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "models/fit.hpp"

namespace foretoken {

/// Which unknown of a fit belongs to which term, and the row that a step contributes. The terms are those
/// of FittedCost; the two signed ones are differences of two unknowns, since unknowns are non-negative.
class FitBasis {
 public:
  /// Chooses knots from the shapes to be fitted.
  explicit FitBasis(const std::vector<FitPoint>& points);
  /// Unknowns in total.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Factor of each unknown in the price of a step.
  [[nodiscard]] std::vector<double> row(const StepFeatures& features) const;
  /// The solution by name.
  [[nodiscard]] FittedCost unpack(const std::vector<double>& x) const;
  /// Pairs of unknowns that are alike where the samples do not say otherwise: neighbouring knots in decode
  /// count, and neighbouring segments in context.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> neighbours() const;
  /// For each knot of sampled rows but 0: a row with 1 at the head and the body at as many tokens.
  struct HeadAndBody {
    std::size_t head = 0;      ///< Unknown of the head.
    std::vector<double> body;  ///< Row of the body alone.
  };
  /// One entry per knot of sampled rows but 0.
  [[nodiscard]] std::vector<HeadAndBody> head_and_body() const;

 private:
  void add_body(std::vector<double>& row, double tokens) const;
  void add_decodes(std::vector<double>& row, const StepFeatures& features) const;
  void add_chunks(std::vector<double>& row, const StepFeatures& features) const;

  std::vector<std::int32_t> token_knots_, sampled_knots_, decode_knots_, context_knots_;
  std::vector<std::int64_t> segments_;  // The context knots, as pairs_in_segment takes them.
  std::size_t head_ = 0, decode_ = 0, slope_ = 0, ragged_ = 0, pair_ = 0, chunk_ = 0, padding_ = 0,
              mixed_ = 0;
  std::size_t size_ = 0;
};

}  // namespace foretoken

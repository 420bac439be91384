#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/core/request.hpp"
#include "sim/workload/random_streams.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// What holds for every offer, whatever it comes from: the stated bound, the prediction, the check for
/// over-long requests.
class OfferRules {
 public:
  explicit OfferRules(const WorkloadSpec& spec)
      : max_new_(spec.max_new),
        max_new_tokens_(spec.max_new_tokens),
        sigma_(spec.prediction_sigma),
        tokens_max_(spec.tokens_max),
        drop_over_long_(spec.drop_over_long),
        errors_(spec.seed, streams::kPrediction) {}

  /// Completes an offer whose lengths are set, with draw `i`; a `max_new_tokens` that is not negative stays.
  /// False when the offer is to be dropped. What is cut or too long is counted.
  bool finish(Offer& offer, std::uint64_t i, WorkloadCounts& counts) const {
    Request& request = offer.request;
    if (tokens_max_ > 0 && std::int64_t{request.prompt_tokens} + offer.output_tokens > tokens_max_) {
      ++counts.over_long;
      if (drop_over_long_) return false;
    }
    if (offer.output_tokens == 0) {
      request.max_new_tokens = 0;
      return true;
    }
    if (request.max_new_tokens < 0 && max_new_ != MaxNewTokens::none) {
      request.max_new_tokens = max_new_ == MaxNewTokens::fixed ? max_new_tokens_ : offer.output_tokens;
    }
    if (request.max_new_tokens >= 0 && offer.output_tokens > request.max_new_tokens) {
      offer.output_tokens = request.max_new_tokens;
      ++counts.outputs_truncated;
    }
    if (sigma_ >= 0.0) request.predicted_output_tokens = predict(offer.output_tokens, i);
    return true;
  }

 private:
  /// The error is multiplicative with median 1, so that short and long answers are mistaken alike.
  std::int32_t predict(std::int32_t output_tokens, std::uint64_t i) const {
    const double error = sigma_ == 0.0 ? 1.0 : std::exp(sigma_ * errors_.normal(i));
    return static_cast<std::int32_t>(std::clamp(output_tokens * error + 0.5, 1.0, double{kTokensMax}));
  }

  MaxNewTokens max_new_;
  std::int32_t max_new_tokens_;
  double sigma_;
  std::int32_t tokens_max_;
  bool drop_over_long_;
  RandomStream errors_;
};

/// Names and their indices; an empty name is "default".
class NameTable {
 public:
  /// Index of the name, added when new. More than 65,535 names are an InputError.
  std::uint16_t intern(std::string_view name, std::vector<std::string>& names);

 private:
  std::unordered_map<std::string, std::uint16_t> indices_;
  std::string last_;
  std::uint16_t last_index_ = 0;
};

/// Chooses a class for draw i in proportion to the weights.
class ClassMix {
 public:
  ClassMix(const std::vector<ClassSpec>& classes, std::uint64_t seed);
  /// Index of the class.
  std::size_t choose(std::uint64_t i) const {
    if (shares_.size() < 2) return 0;
    const double u = draws_.uniform(i);
    std::size_t at = 0;
    while (at + 1 < shares_.size() && u >= shares_[at]) ++at;
    return at;
  }

 private:
  RandomStream draws_;
  /// Sums of the weights up to each class, over their total.
  std::vector<double> shares_;
};

/// Refuses what no source can be built from: weights, rates, lengths that make no sense.
void check_spec(const WorkloadSpec& spec);

}  // namespace foretoken

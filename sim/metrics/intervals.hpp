#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace foretoken {

/// An estimate with its interval; same unit throughout.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Quantile of Student's t distribution: the x below which a share `p` lies, for `degrees` of freedom (at
/// least 1).
double student_t_quantile(double p, std::int64_t degrees);
/// Mean of independent replicates with the half-width of its interval, t * s / sqrt(n). With one replicate
/// the half-width is infinite.
struct ReplicateMean {
  double mean = 0;
  double half_width = 0;
};
/// Mean of independent replicates and half-width of its t interval.
ReplicateMean replicate_mean(std::span<const double> values, double confidence = 0.95);

/// How a fixed trace is resampled.
struct BootstrapOptions {
  std::int64_t resamples = 400;
  /// Requests per block; 0: `block_length`.
  std::int64_t block = 0;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

/// The block length used where none is given: the greater of the cube root of n and the mean number of
/// requests in the system (neighbours share their queue), at most a tenth of n.
std::int64_t block_length(std::int64_t n, double mean_in_system);

/// Interval of the q-quantile (nothing: of the mean) of values in order of arrival, by the moving-block
/// bootstrap (Kuensch 1989) with the percentile rule. Fewer than 20 values: nothing.
std::optional<Interval> bootstrap_interval(std::span<const std::int64_t> values,
                                           std::optional<double> quantile, const BootstrapOptions& options);

}  // namespace foretoken

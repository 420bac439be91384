#include <algorithm>
#include <cmath>
#include <tuple>

#include "models/fit.hpp"
#include "models/least_squares.hpp"
#include "models/profile.hpp"
#include "models/profile_json.hpp"
#include "sim/base/check.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

/// Expected misfit of the form itself: shapes timed better than this are all trusted alike.
constexpr double kFormError = 0.01;

struct Trimmed {
  double mean = 0;
  double relative_error = 0;  // Standard error of the mean, relative to it.
};

Trimmed trimmed(std::vector<std::int64_t> durations_ps, double trim_share) {
  FT_CHECK(!durations_ps.empty());
  std::sort(durations_ps.begin(), durations_ps.end());
  const auto count = static_cast<std::int64_t>(durations_ps.size());
  const std::int64_t wanted = std::llround(trim_share * static_cast<double>(count));
  const std::int64_t dropped = std::min(wanted, (count - 1) / 2);
  double sum = 0, squares = 0;
  for (std::int64_t i = dropped; i < count - dropped; ++i) {
    const auto duration = static_cast<double>(durations_ps[static_cast<std::size_t>(i)]);
    sum += duration;
    squares += duration * duration;
  }
  const auto kept = static_cast<double>(count - 2 * dropped);
  const double mean = sum / kept;
  const double variance = std::max(0.0, squares / kept - mean * mean);
  return {mean, mean > 0 ? std::sqrt(variance / kept) / mean : 0.0};
}

/// A single timing says nothing of its own spread; it counts as uncertain by this much.
constexpr double kErrorOfSingleTiming = 0.03;

std::vector<FitPoint> to_points(const std::vector<ShapeSamples>& samples, bool with_held_out,
                                double trim_share) {
  const SpikeShares spikes = spike_shares(samples, trim_share);
  std::vector<FitPoint> points;
  for (const ShapeSamples& sample : samples) {
    if (sample.held_out && !with_held_out) continue;
    const Trimmed centre = trimmed(sample.durations_ps, trim_share);
    const double spread = sample.durations_ps.size() > 1 ? centre.relative_error : kErrorOfSingleTiming;
    const double mean = centre.mean * (1 + spikes[static_cast<std::size_t>(sample.regime)]);
    points.push_back({&sample.shape, mean, kFormError / std::hypot(kFormError, spread)});
  }
  return points;
}

std::int32_t context_end(const StepShape& shape) {
  std::int32_t end = shape.decode_context_max;
  for (const ChunkFeatures& chunk : shape.chunks) end = std::max(end, chunk.context + chunk.tokens);
  return end;
}

/// Groups timings by shape, in the order in which shapes first appear.
std::vector<ShapeSamples> group(const std::vector<Sample>& samples) {
  std::vector<ShapeSamples> groups;
  for (const Sample& sample : samples) {
    if (sample.duration_ps <= 0 || computed_tokens(sample.shape.features()) <= 0) continue;
    auto found = std::find_if(groups.begin(), groups.end(), [&](const ShapeSamples& group) {
      return group.regime == sample.regime && group.shape == sample.shape;
    });
    if (found == groups.end()) found = groups.insert(found, {sample.shape, sample.regime, false, {}});
    found->durations_ps.push_back(sample.duration_ps);
  }
  return groups;
}

MeasuredRange range_of(const std::vector<ShapeSamples>& samples) {
  MeasuredRange range{0, 0, 0};
  for (const ShapeSamples& sample : samples) {
    range.tokens_max = std::max(range.tokens_max, computed_tokens(sample.shape.features()));
    range.decodes_max = std::max(range.decodes_max, sample.shape.decode_count);
    range.context_max = std::max(range.context_max, context_end(sample.shape));
  }
  return range;
}

/// True when other kept shapes of the regime reach as far in tokens, decodes and context, both up and down:
/// such a shape can be predicted by interpolation.
bool is_enclosed(const std::vector<ShapeSamples*>& shapes, const ShapeSamples& candidate) {
  bool above[3] = {}, below[3] = {};
  const auto extent = [](const ShapeSamples& sample, int axis) -> std::int64_t {
    if (axis == 0) return computed_tokens(sample.shape.features());
    return axis == 1 ? sample.shape.decode_count : context_end(sample.shape);
  };
  for (const ShapeSamples* other : shapes) {
    if (other == &candidate || other->held_out) continue;
    for (int axis = 0; axis < 3; ++axis) {
      above[axis] |= extent(*other, axis) >= extent(candidate, axis);
      below[axis] |= extent(*other, axis) <= extent(candidate, axis);
    }
  }
  return above[0] && above[1] && above[2] && below[0] && below[1] && below[2];
}

/// Marks about one enclosed shape in `every` of each regime, spread over the regime's range.
void hold_out(std::vector<ShapeSamples>& samples, std::int32_t every) {
  if (every <= 0) return;
  for (int regime = 0; regime < kRegimes; ++regime) {
    std::vector<ShapeSamples*> shapes;
    for (ShapeSamples& sample : samples)
      if (static_cast<int>(sample.regime) == regime) shapes.push_back(&sample);
    std::stable_sort(shapes.begin(), shapes.end(), [](const ShapeSamples* a, const ShapeSamples* b) {
      const auto key = [](const ShapeSamples& sample) {
        return std::tuple(computed_tokens(sample.shape.features()), sample.shape.decode_count,
                          attended_tokens(sample.shape.features()));
      };
      return key(*a) < key(*b);
    });
    std::int32_t since = every / 2;
    for (ShapeSamples* shape : shapes) {
      if (++since < every || !is_enclosed(shapes, *shape)) continue;
      shape->held_out = true;
      since = 0;
    }
  }
}

double head_share(const ProfileOrigin& origin) {
  const double head = static_cast<double>(head_parameters(origin.shape));
  const double all = head + static_cast<double>(layer_parameters(origin.shape));
  return all > 0 ? head / all : 0.0;
}

TransferCost fit_transfer(const std::vector<TransferSample>& transfers) {
  LeastSquares system(2);
  for (const TransferSample& transfer : transfers) {
    if (transfer.duration_ps <= 0 || transfer.blocks <= 0) continue;
    const auto duration = static_cast<double>(transfer.duration_ps);
    system.add({1.0 / duration, static_cast<double>(transfer.blocks) / duration}, 1.0, 1.0);
  }
  const std::vector<double> x = system.solve_nonnegative();
  return {std::llround(x[0]), std::llround(x[1])};
}

CostTables profile_tables(const Profile& profile) {
  CostTables tables = fitted_tables(profile.fit, profile.range);
  const ProfileOrigin& origin = profile.origin;
  tables.grade = origin.grade;
  tables.transfer = profile.transfer;
  if (origin.shape.layers > 0)
    tables.floor = make_floor(origin.shape, origin.weight_precision, origin.kv_precision, origin.limits);
  return tables;
}

/// The constant with the least mean absolute relative error: the median weighted by 1 / timing.
double best_constant(std::vector<std::int64_t> durations_ps) {
  std::sort(durations_ps.begin(), durations_ps.end());
  double all = 0, passed = 0;
  for (const std::int64_t duration : durations_ps) all += 1.0 / static_cast<double>(duration);
  for (const std::int64_t duration : durations_ps) {
    passed += 1.0 / static_cast<double>(duration);
    if (2 * passed >= all) return static_cast<double>(duration);
  }
  return static_cast<double>(durations_ps.back());
}

}  // namespace

std::string_view regime_name(Regime regime) {
  constexpr std::string_view kNames[] = {"prefill", "decode", "mixed", "ragged"};
  return kNames[static_cast<std::size_t>(regime)];
}

Regime regime_of(const StepFeatures& features) {
  constexpr std::int32_t kRaggedTokens = 16;
  constexpr std::int32_t kRaggedShare = 10;
  if (features.decode_count == 0) return Regime::prefill;
  if (!features.chunks.empty()) return Regime::mixed;
  const std::int32_t spread = features.decode_context_max - features.decode_context_min;
  const bool is_ragged = spread > kRaggedTokens && spread > features.decode_context_max / kRaggedShare;
  return is_ragged ? Regime::ragged : Regime::decode;
}

double trimmed_mean(std::vector<std::int64_t> durations_ps, double trim_share) {
  return trimmed(std::move(durations_ps), trim_share).mean;
}

SpikeShares spike_shares(const std::vector<ShapeSamples>& samples, double trim_share) {
  // Ratios, not sums: among sums the few longest steps would decide, and they are hit by few spikes.
  SpikeShares sums{}, timings{};
  for (const ShapeSamples& sample : samples) {
    if (sample.durations_ps.empty()) continue;
    const auto count = static_cast<double>(sample.durations_ps.size());
    const double ratio =
        trimmed_mean(sample.durations_ps, 0.0) / trimmed_mean(sample.durations_ps, trim_share);
    sums[static_cast<std::size_t>(sample.regime)] += count * (ratio - 1);
    timings[static_cast<std::size_t>(sample.regime)] += count;
  }
  for (std::size_t r = 0; r < sums.size(); ++r) sums[r] = timings[r] > 0 ? sums[r] / timings[r] : 0;
  return sums;
}

std::vector<RegimeError> errors_by_regime(const StepCost& cost, const std::vector<ShapeSamples>& samples,
                                          double trim_share) {
  std::vector<RegimeError> errors;
  for (int regime = 0; regime < kRegimes; ++regime) {
    RegimeError error{static_cast<Regime>(regime)};
    double predicted_sum = 0, centre_sum = 0, mean_sum = 0, timings = 0, noise_sum = 0, repeated = 0;
    for (const ShapeSamples& sample : samples) {
      if (sample.regime != error.regime || sample.durations_ps.empty()) continue;
      const auto predicted = static_cast<double>(cost.estimate_ps(sample.shape.features()));
      const double constant = best_constant(sample.durations_ps);
      ++error.shapes;
      predicted_sum += predicted;
      centre_sum += trimmed_mean(sample.durations_ps, trim_share);
      mean_sum += trimmed_mean(sample.durations_ps, 0.0);
      for (const std::int64_t duration_ps : sample.durations_ps) {
        const auto duration = static_cast<double>(duration_ps);
        error.mape += std::abs(predicted - duration) / duration;
        ++timings;
        // A single timing is its own best constant and tells nothing of the noise.
        if (sample.durations_ps.size() < 2) continue;
        noise_sum += std::abs(constant - duration) / duration;
        ++repeated;
      }
    }
    if (error.shapes == 0) continue;
    error.bias = predicted_sum / mean_sum - 1.0;
    error.spike_share = mean_sum / centre_sum - 1.0;
    error.mape /= timings;
    if (repeated > 0) error.noise_floor_mape = noise_sum / repeated;
    errors.push_back(error);
  }
  return errors;
}

Profile fit_profile(const std::vector<Sample>& samples, const ProfileOrigin& origin,
                    const std::vector<TransferSample>& transfers, const FitOptions& options) {
  Profile profile;
  profile.origin = origin;
  profile.samples = group(samples);
  if (profile.samples.empty())
    throw input_error("calibration", "at least one step with a duration above 0", "none");
  hold_out(profile.samples, options.held_out_every);
  profile.range = range_of(profile.samples);
  profile.transfer = fit_transfer(transfers);
  profile.trim_share = options.trim_share;
  std::vector<ShapeSamples> held_out;
  for (const ShapeSamples& sample : profile.samples)
    if (sample.held_out) held_out.push_back(sample);
  if (!held_out.empty()) {
    profile.fit = fit_cost(to_points(profile.samples, false, options.trim_share), head_share(origin));
    profile.errors = errors_by_regime(*make_cost(profile), held_out, options.trim_share);
  }
  profile.fit = fit_cost(to_points(profile.samples, true, options.trim_share), head_share(origin));
  const HardwareFloor floor = profile_tables(profile).floor;
  for (const ShapeSamples& sample : profile.samples)
    profile.samples_below_floor += is_below_floor(
        floor, sample.shape.features(), std::llround(trimmed_mean(sample.durations_ps, options.trim_share)));
  profile.hash = content_hash(profile);
  return profile;
}

std::unique_ptr<StepCost> make_cost(const Profile& profile) {
  return make_table_cost(profile_tables(profile));
}

}  // namespace foretoken

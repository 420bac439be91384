#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/cost.hpp"
#include "models/cost_tables.hpp"
#include "models/device.hpp"
#include "models/shape.hpp"
#include "models/step_features.hpp"

namespace foretoken {

/// Kind of step, by which errors are reported: chunks only, equal decodes only, chunks with decodes,
/// decodes of unlike contexts.
enum class Regime : std::uint8_t { prefill, decode, mixed, ragged };
inline constexpr int kRegimes = 4;  ///< Number of regimes.

/// "prefill", "decode", "mixed" or "ragged".
[[nodiscard]] std::string_view regime_name(Regime regime);
/// The regime of a step. Decodes are ragged when longest and shortest context differ by over 10 % and 16
/// tokens.
[[nodiscard]] Regime regime_of(const StepFeatures& features);

/// One timed step.
struct Sample {
  StepShape shape;                  ///< What was run.
  Regime regime = Regime::prefill;  ///< As `regime_of(shape)`, unless the caller knows better.
  std::int32_t repeat = 0;          ///< Which interleaved pass over all shapes it belongs to.
  std::int64_t duration_ps = 0;     ///< End of the previous step to the end of this one.
};

/// All timings of one shape, in the order of their repeats.
struct ShapeSamples {
  StepShape shape;                         ///< What was run.
  Regime regime = Regime::prefill;         ///< Its regime.
  bool held_out = false;                   ///< Kept from the fit whose error is reported.
  std::vector<std::int64_t> durations_ps;  ///< One per repeat.
};

/// One timed KV transfer.
struct TransferSample {
  std::int64_t blocks = 0;       ///< Blocks moved at once.
  std::int64_t duration_ps = 0;  ///< Time it took.
};

/// Where and how samples were taken. Everything is passed in; nothing here asks the machine.
struct ProfileOrigin {
  Grade grade = Grade::calibrated;               ///< Kind of evidence.
  std::string device;                            ///< Processor or accelerator.
  std::string driver;                            ///< Driver, or instruction set on a CPU.
  std::string clocks;                            ///< Clock setting or governor, as text.
  std::string kernel_build;                      ///< Version and compiler of the kernels.
  std::string date;                              ///< ISO 8601.
  std::int32_t threads = 1;                      ///< Threads of the backend.
  std::int32_t depth = 0;                        ///< Scheduling depth in which steps were timed.
  std::int32_t block_tokens = 16;                ///< Tokens per KV block.
  ModelShape shape;                              ///< The model that ran.
  Precision weight_precision = Precision::bf16;  ///< Its weights.
  Precision kv_precision = Precision::bf16;      ///< Its KV cache.
  DeviceSheet limits;                            ///< Measured limits of the machine; zeros where unknown.
  friend bool operator==(const ProfileOrigin&, const ProfileOrigin&) = default;
};

/// Fitted step cost in picoseconds: piecewise linear in tokens, decode count and context between knots.
/// price = body(computed tokens) + head(sampled rows) + attention + padding + interaction of mixed steps.
struct FittedCost {
  std::vector<std::int32_t> token_knots;    ///< Computed tokens, rising.
  std::vector<double> body_ps;              ///< Layers and host time at each of them.
  std::vector<std::int32_t> sampled_knots;  ///< Rows through the LM head, from 0, rising.
  std::vector<double> head_ps;              ///< Their price; 0 for no rows.
  std::vector<std::int32_t> decode_knots;   ///< Decode counts, rising.
  std::vector<double> decode_ps;            ///< Attention of that many decodes beside the context terms.
  std::vector<std::int32_t> context_knots;  ///< Contexts where slopes change, from 0, rising.
  std::vector<double> decode_slope_ps;      ///< Per context token; decode knots x context knots.
  std::vector<double> ragged_ps;            ///< Per token of (count x longest - sum), by decode knot.
  double chunk_ps = 0;                      ///< Per prefill chunk.
  double chunk_context_ps = 0;              ///< Per context token that a chunk reads.
  std::vector<double> pair_ps;              ///< Per query-key pair, by context knot.
  double padded_token_ps = 0;               ///< Per padded prompt token, on top of the body.
  double padded_row_ps = 0;                 ///< Per dead row, on top of body and head.
  double mixed_ps = 0;                      ///< Per mixed step, either sign.
  double mixed_decode_ps = 0;               ///< Per decode in a mixed step, either sign.
  friend bool operator==(const FittedCost&, const FittedCost&) = default;
};

/// Error of a fit on shapes that it did not see. `mape` and `noise_floor_mape` are over single timings, so
/// they compare.
struct RegimeError {
  Regime regime = Regime::prefill;  ///< Which kind of step.
  std::int32_t shapes = 0;          ///< Held-out shapes behind the figures.
  double bias = 0;                  ///< Sum of predictions over sum of means, less 1.
  double mape = 0;                  ///< Mean absolute error relative to each timing.
  /// The same for the best constant of each shape that was timed more than once; unknown where none was.
  std::optional<double> noise_floor_mape = {};
  double spike_share = 0;  ///< Sum of plain means over sum of trimmed means, less 1.
  friend bool operator==(const RegimeError&, const RegimeError&) = default;
};

/// Share of timings dropped at each end of a shape before the mean is taken (rounded to the nearest count):
/// a shape has too few timings to tell how often it is hit by a spike.
inline constexpr double kTrimShare = 0.1;

/// Step costs with provenance.
struct Profile {
  std::int32_t schema_version = 1;       ///< Of the file.
  ProfileOrigin origin;                  ///< Machine, mode and model.
  std::vector<ShapeSamples> samples;     ///< What was measured.
  FittedCost fit;                        ///< Fitted to all samples.
  MeasuredRange range;                   ///< What they cover.
  TransferCost transfer;                 ///< Swap copies.
  double trim_share = kTrimShare;        ///< Of the means that were fitted.
  std::vector<RegimeError> errors;       ///< Of a fit without the held-out shapes.
  std::int64_t samples_below_floor = 0;  ///< Shapes measured faster than the floor: the limits are wrong.
  std::string hash;                      ///< SHA-256 of all of the above.
};

/// Choices of a fit.
struct FitOptions {
  double trim_share = kTrimShare;   ///< 0: the plain mean.
  std::int32_t held_out_every = 5;  ///< One shape in so many of each regime is held out; 0: none.
};

/// Mean of the timings without the lowest and highest `trim_share`.
[[nodiscard]] double trimmed_mean(std::vector<std::int64_t> durations_ps, double trim_share);
/// By Regime: plain mean over trimmed mean, less 1, averaged over timings.
using SpikeShares = std::array<double, kRegimes>;
/// How much the spikes of all shapes of a regime together add to their trimmed means. A price is a shape's
/// trimmed mean times 1 + this share: what a live run sees on average.
[[nodiscard]] SpikeShares spike_shares(const std::vector<ShapeSamples>& samples, double trim_share);
/// Fits a profile. Whole shapes are held out, never single repeats, and only inside the measured range.
/// Relative errors are minimised with outlying shapes weighted down. InputError when no sample is usable.
[[nodiscard]] Profile fit_profile(const std::vector<Sample>& samples, const ProfileOrigin& origin,
                                  const std::vector<TransferSample>& transfers = {},
                                  const FitOptions& options = {});
/// Errors of a cost on timed shapes, by regime; regimes without shapes are left out.
[[nodiscard]] std::vector<RegimeError> errors_by_regime(const StepCost& cost,
                                                        const std::vector<ShapeSamples>& samples,
                                                        double trim_share);
/// The cost that a profile describes.
[[nodiscard]] std::unique_ptr<StepCost> make_cost(const Profile& profile);

/// The profile as JSON, its hash included.
[[nodiscard]] Json profile_to_json(const Profile& profile);
/// Reads a profile; refuses unknown keys, other schema versions and a content that does not match its hash.
[[nodiscard]] Profile profile_from_json(const Json& json, const std::string& place);
/// Reads a profile file (`.gz` too).
[[nodiscard]] Profile read_profile(const std::string& path);
/// Writes a profile file in one piece.
void write_profile(const std::string& path, const Profile& profile);

}  // namespace foretoken

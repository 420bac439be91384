#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "models/device.hpp"
#include "models/shape.hpp"
#include "models/step_features.hpp"

namespace foretoken {

/// Where a cost comes from: measured on our kernels, published by others, derived from datasheets, or
/// written down.
enum class Grade : std::uint8_t { calibrated, imported, roofline, stated };

/// "calibrated", "imported", "roofline" or "stated".
[[nodiscard]] std::string_view grade_name(Grade grade);

/// The price of a decode step repeated: repeat j (from 0) costs exactly `first_ps + j * growth_ps`, which
/// equals `step_ps(advanced(features, j))`, for every j < `repeats_valid`.
struct DecodeWindow {
  std::int64_t first_ps = 0;       ///< Price of the step as given.
  std::int64_t growth_ps = 0;      ///< What each further repeat costs more.
  std::int64_t repeats_valid = 1;  ///< At least 1; ask again after that many repeats.
};

/// Upper bound of `repeats_valid`: contexts are 32-bit.
inline constexpr std::int64_t kRepeatsUnbounded = std::numeric_limits<std::int32_t>::max();

/// How often a cost was asked, and how often outside what it stands for. A window counts as one query.
struct CostCounters {
  std::int64_t queries = 0;               ///< Steps and windows priced.
  std::int64_t outside_tokens = 0;        ///< More computed tokens than measured.
  std::int64_t outside_decode_count = 0;  ///< More decodes than measured.
  std::int64_t outside_context = 0;       ///< A longer context than measured.
  std::int64_t below_floor = 0;           ///< Faster than the hardware floor allows, beyond its tolerance.
};

/// Moving KV blocks between the device and the host (swap).
struct TransferCost {
  std::int64_t fixed_ps = 0;  ///< Per transfer.
  std::int64_t block_ps = 0;  ///< Per block.
  /// Time to move that many blocks at once; zero for none.
  [[nodiscard]] std::int64_t copy_ps(std::int64_t blocks) const {
    return blocks == 0 ? 0 : fixed_ps + block_ps * blocks;
  }
  friend bool operator==(const TransferCost&, const TransferCost&) = default;
};

/// Prices steps in integer picoseconds. Holds its counters, so each simulation has its own (`clone` shares
/// the tables).
class StepCost {
 public:
  virtual ~StepCost() = default;
  /// Price of one step, end of the previous step to the end of this one. Counts the query.
  [[nodiscard]] std::int64_t step_ps(const StepFeatures& features) {
    ++counters_.queries;
    return price_step(features, counters_);
  }
  /// Price of a pure decode step and of its repeats (see DecodeWindow). O(1). Counts one query.
  [[nodiscard]] DecodeWindow decode_window(const StepFeatures& features) {
    ++counters_.queries;
    return price_window(features, counters_);
  }
  /// `step_ps` for a policy that wonders what a step would cost: nothing is counted.
  [[nodiscard]] std::int64_t estimate_ps(const StepFeatures& features) const {
    CostCounters ignored;
    return price_step(features, ignored);
  }
  /// Price of moving KV blocks.
  [[nodiscard]] virtual const TransferCost& transfer() const = 0;
  /// Hexadecimal SHA-256 of everything that prices depend on.
  [[nodiscard]] virtual const std::string& hash() const = 0;
  /// Kind of evidence behind the prices.
  [[nodiscard]] virtual Grade grade() const = 0;
  /// The same prices with counters at zero.
  [[nodiscard]] virtual std::unique_ptr<StepCost> clone() const = 0;
  /// Counts since construction.
  [[nodiscard]] const CostCounters& counters() const { return counters_; }

 protected:
  /// Price of one step; adds to the counters for queries outside the measured range or below the floor.
  virtual std::int64_t price_step(const StepFeatures& features, CostCounters& counters) const = 0;
  /// Price of a window of pure decode steps.
  virtual DecodeWindow price_window(const StepFeatures& features, CostCounters& counters) const = 0;

 private:
  CostCounters counters_;
};

/// Coefficients of a cost that someone states in a scenario. Microseconds; rounded once to picoseconds.
struct AffineCoefficients {
  double step_us = 0;            ///< Every step.
  double token_us = 0;           ///< Per computed token, padding and dead rows included.
  double context_token_us = 0;   ///< Per context token that a decode or a chunk reads.
  double chunk_us = 0;           ///< Per prefill chunk.
  double pair_us = 0;            ///< Per query-key pair of a chunk (the quadratic term).
  double sampled_row_us = 0;     ///< Per row through the LM head.
  double transfer_us = 0;        ///< Per swap transfer.
  double transfer_block_us = 0;  ///< Per block of it.
};

/// Reads the coefficients by their names above; unknown keys are refused, absent ones are 0, all zero is
/// refused.
[[nodiscard]] AffineCoefficients affine_from_json(const Json& json, const std::string& place,
                                                  const std::string& pointer);
/// The coefficients as `affine_from_json` reads them.
[[nodiscard]] Json affine_to_json(const AffineCoefficients& coefficients);
/// A stated cost.
[[nodiscard]] std::unique_ptr<StepCost> make_affine_cost(const AffineCoefficients& coefficients);

/// How far real kernels stay behind the datasheet. Defaults: 0.8 of the bandwidth and 3 us for each of five
/// small kernels a layer as in aiconfigurator's model of H100, 0.7 of peak FLOPs, 1 ms of host time per
/// step (measured engines: 0.5-2.8 ms).
struct RooflineOptions {
  std::int32_t tensor_parallel = 1;              ///< Devices that share each layer.
  Precision weight_precision = Precision::bf16;  ///< Weights; products run at this format's peak.
  Precision kv_precision = Precision::bf16;      ///< KV cache.
  std::int32_t block_tokens = 16;                ///< Tokens per KV block, for swap transfers.
  double flops_efficiency = 0.7;                 ///< Share of peak that products reach.
  double bandwidth_efficiency = 0.8;             ///< Share of the bandwidth that streaming reaches.
  double step_fixed_us = 1000;                   ///< Host time of each step.
  double layer_fixed_us = 15;                    ///< Small kernels of each layer.
  double peer_latency_us = 8;                    ///< Latency of one all-reduce; two per layer when sharded.
};

/// A derived cost: products at the larger of weight streaming and arithmetic, attention as KV streaming
/// plus arithmetic, ring all-reduces. InputError when the model cannot be sharded that way or the device
/// lacks a figure.
[[nodiscard]] std::unique_ptr<StepCost> make_roofline_cost(const ModelShape& shape, const DeviceSheet& device,
                                                           const RooflineOptions& options);

/// The least time a machine can take for a step, as integer coefficients: reading weights and KV at the
/// bandwidth of the weights' working set (a larger set reads no faster), and arithmetic at peak; the larger
/// of both.
struct HardwareFloor {
  std::int64_t weights_ps = 0;      ///< Reading the layers' weights once.
  std::int64_t head_ps = 0;         ///< Reading the LM head, when any row is sampled.
  std::int64_t kv_token_ps = 0;     ///< Reading one token's keys and values, rounded down.
  std::int64_t flops_token_ps = 0;  ///< Products of one token, rounded down.
  std::int64_t flops_head_ps = 0;   ///< LM head of one row, rounded down.
  std::int64_t flops_pair_ps = 0;   ///< Attention of one pair, rounded down.
  double tolerance = 0.05;          ///< A price below (1 - tolerance) of the floor is a breach.
  friend bool operator==(const HardwareFloor&, const HardwareFloor&) = default;
};

/// The floor of a model on a machine; all zero where the machine's limits are not known.
[[nodiscard]] HardwareFloor make_floor(const ModelShape& shape, Precision weight_precision,
                                       Precision kv_precision, const DeviceSheet& limits,
                                       std::int32_t tensor_parallel = 1);
/// The least time for a step.
[[nodiscard]] std::int64_t floor_ps(const HardwareFloor& floor, const StepFeatures& features);
/// True when a price undercuts the floor by more than its tolerance.
[[nodiscard]] bool is_below_floor(const HardwareFloor& floor, const StepFeatures& features,
                                  std::int64_t price_ps);

}  // namespace foretoken

#include "models/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/cost_tables.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

struct AffineKey {
  std::string_view name;
  double AffineCoefficients::*value;
};
constexpr std::array<AffineKey, 8> kAffineKeys = {
    {{"step_us", &AffineCoefficients::step_us},
     {"token_us", &AffineCoefficients::token_us},
     {"context_token_us", &AffineCoefficients::context_token_us},
     {"chunk_us", &AffineCoefficients::chunk_us},
     {"pair_us", &AffineCoefficients::pair_us},
     {"sampled_row_us", &AffineCoefficients::sampled_row_us},
     {"transfer_us", &AffineCoefficients::transfer_us},
     {"transfer_block_us", &AffineCoefficients::transfer_block_us}}};

std::int64_t from_us(double duration_us) { return std::llround(duration_us * 1e6); }

/// A floor must not exceed what is possible, so its coefficients are rounded down.
std::int64_t ps_rounded_down(double amount, double rate_per_s) {
  return rate_per_s > 0 ? static_cast<std::int64_t>(amount / rate_per_s * kPicosecondsPerSecond) : 0;
}

}  // namespace

std::string_view grade_name(Grade grade) {
  constexpr std::array<std::string_view, 4> kNames = {"calibrated", "imported", "roofline", "stated"};
  return kNames[static_cast<std::size_t>(grade)];
}

AffineCoefficients affine_from_json(const Json& json, const std::string& place, const std::string& pointer) {
  constexpr double kMicrosecondsMax = 1e9;
  JsonReader reader(json, place, pointer);
  AffineCoefficients coefficients;
  for (const AffineKey& key : kAffineKeys)
    coefficients.*key.value = reader.number(key.name, 0.0, 0.0, kMicrosecondsMax);
  reader.finish();
  if (from_us(coefficients.step_us) == 0 && from_us(coefficients.token_us) == 0)
    reader.fail("", "a step_us or token_us of at least a picosecond, so that time moves", json.dump());
  return coefficients;
}

Json affine_to_json(const AffineCoefficients& coefficients) {
  Json json = Json::object();
  for (const AffineKey& key : kAffineKeys) json.set(key.name, coefficients.*key.value);
  return json;
}

std::unique_ptr<StepCost> make_affine_cost(const AffineCoefficients& coefficients) {
  CostTables tables;
  tables.grade = Grade::stated;
  tables.body = {{from_us(coefficients.step_us)}, from_us(coefficients.token_us)};
  tables.head = {{0}, from_us(coefficients.sampled_row_us)};
  tables.decode_slopes_ps = {from_us(coefficients.context_token_us)};
  tables.chunk_ps = from_us(coefficients.chunk_us);
  tables.chunk_context_ps = from_us(coefficients.context_token_us);
  tables.pair_ps = {from_us(coefficients.pair_us)};
  tables.transfer = {from_us(coefficients.transfer_us), from_us(coefficients.transfer_block_us)};
  return make_table_cost(std::move(tables));
}

HardwareFloor make_floor(const ModelShape& shape, Precision weight_precision, Precision kv_precision,
                         const DeviceSheet& limits, std::int32_t tensor_parallel) {
  const ModelShape part = shard_shape(shape, tensor_parallel);
  const double head = static_cast<double>(head_parameters(part));
  const double head_bytes = head * std::max(2.0, bytes_per_number(weight_precision));
  const double streamed = streamed_weight_bytes(part, weight_precision);
  const double bandwidth = bandwidth_at(limits, streamed);
  const double peak = peak_flops(limits, weight_precision);
  // Attention and head run in 16 bits where weights are narrower, but a faster format may be used: the
  // highest peak bounds.
  const double pair_flops = 4.0 * part.layers * part.heads * part.head_dim;
  const double peak_any = std::max(peak, peak_flops(limits, Precision::bf16));
  HardwareFloor floor;
  floor.weights_ps = ps_rounded_down(streamed - head_bytes, bandwidth);
  floor.head_ps = ps_rounded_down(head_bytes, bandwidth);
  floor.kv_token_ps = ps_rounded_down(kv_bytes_per_token(part, kv_precision), bandwidth);
  floor.flops_token_ps = ps_rounded_down(2.0 * static_cast<double>(layer_parameters(part)), peak);
  floor.flops_head_ps = ps_rounded_down(2.0 * head, peak_any);
  floor.flops_pair_ps = ps_rounded_down(pair_flops, peak_any);
  return floor;
}

std::int64_t floor_ps(const HardwareFloor& floor, const StepFeatures& features) {
  std::int64_t contexts = features.decode_context_sum;
  for (const ChunkFeatures& chunk : features.chunks) contexts += chunk.context;
  const std::int64_t bytes_ps =
      floor.weights_ps + (features.sampled_rows > 0 ? floor.head_ps : 0) + contexts * floor.kv_token_ps;
  const std::int64_t flops_ps = computed_tokens(features) * floor.flops_token_ps +
                                features.sampled_rows * floor.flops_head_ps +
                                attention_pairs(features) * floor.flops_pair_ps;
  return std::max(bytes_ps, flops_ps);
}

bool is_below_floor(const HardwareFloor& floor, const StepFeatures& features, std::int64_t price_ps) {
  const double least_ps = (1.0 - floor.tolerance) * static_cast<double>(floor_ps(floor, features));
  return static_cast<double>(price_ps) < least_ps;
}

}  // namespace foretoken

#include <algorithm>
#include <cmath>
#include <string>

#include "models/cost.hpp"
#include "models/cost_tables.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;
constexpr double kTransferFixedUs = 10;

std::int64_t to_ps(double seconds) { return std::llround(seconds * kPicosecondsPerSecond); }

/// max(bytes / bandwidth, count x flops / peak) + fixed + count x extra, tabulated up to the kink.
Ramp kinked_ramp(double stream_s, double unit_flops_s, double fixed_s, double unit_extra_s,
                 bool free_at_zero) {
  const auto kink = static_cast<std::int64_t>(std::ceil(stream_s / unit_flops_s));
  Ramp ramp;
  ramp.values_ps.clear();
  for (std::int64_t count = 0; count <= kink + 1; ++count) {
    const auto units = static_cast<double>(count);
    const double products_s = std::max(stream_s, units * unit_flops_s);
    ramp.values_ps.push_back(to_ps(products_s + fixed_s + units * unit_extra_s));
  }
  ramp.tail_ps = to_ps(unit_flops_s + unit_extra_s);
  if (free_at_zero) ramp.values_ps.front() = 0;
  return ramp;
}

void require(double value, const DeviceSheet& device, std::string_view key) {
  if (!(value > 0)) throw input_error("device " + device.name, std::string(key) + " above 0", "none");
}

/// Traffic of norms, residuals and activations: 2 x 8 bytes per hidden and 6 per inner number, layer and
/// token (aiconfigurator's dense operator list).
double activation_bytes_per_token(const ModelShape& part) {
  return part.layers * (16.0 * part.hidden + 6.0 * part.ffn);
}

}  // namespace

std::unique_ptr<StepCost> make_roofline_cost(const ModelShape& shape, const DeviceSheet& device,
                                             const RooflineOptions& options) {
  require(device.bandwidth_bytes_per_s, device, "bandwidth_bytes_per_s");
  require(peak_flops(device, options.weight_precision), device, "peak_flops_per_s");
  if (options.tensor_parallel > 1) require(device.peer_link_bytes_per_s, device, "peer_link_bytes_per_s");
  const ModelShape part = shard_shape(shape, options.tensor_parallel);
  const double ranks = options.tensor_parallel;
  const double head = static_cast<double>(head_parameters(part));
  const double head_bytes = head * std::max(2.0, bytes_per_number(options.weight_precision));
  const double streamed = streamed_weight_bytes(part, options.weight_precision);
  const double bandwidth = bandwidth_at(device, streamed) * options.bandwidth_efficiency;
  const double product_rate = peak_flops(device, options.weight_precision) * options.flops_efficiency;
  const double attention_rate = peak_flops(device, Precision::bf16) * options.flops_efficiency;
  // Ring all-reduce of 16-bit activations, twice a layer: 2 (p - 1) / p of the bytes pass each link.
  const double reduce_bytes_per_token = 2.0 * part.layers * 2.0 * (ranks - 1) / ranks * 2.0 * part.hidden;
  const double reduce_s_per_token = ranks > 1 ? reduce_bytes_per_token / device.peer_link_bytes_per_s : 0.0;
  const double reduce_fixed_us = ranks > 1 ? 2.0 * part.layers * options.peer_latency_us : 0.0;
  const double fixed_us = options.step_fixed_us + part.layers * options.layer_fixed_us + reduce_fixed_us;
  const double kv_token_s = kv_bytes_per_token(part, options.kv_precision) / bandwidth;
  const double pair_s = 4.0 * part.layers * part.heads * part.head_dim / attention_rate;

  CostTables tables;
  tables.grade = Grade::roofline;
  tables.body = kinked_ramp((streamed - head_bytes) / bandwidth,
                            2.0 * static_cast<double>(layer_parameters(part)) / product_rate, fixed_us * 1e-6,
                            activation_bytes_per_token(part) / bandwidth + reduce_s_per_token, false);
  tables.head = kinked_ramp(head_bytes / bandwidth, 2.0 * head / attention_rate, 0.0, 0.0, true);
  tables.decode = {{0}, to_ps(std::max(kv_token_s, pair_s))};
  tables.decode_slopes_ps = {to_ps(std::max(kv_token_s, pair_s))};
  tables.chunk_context_ps = to_ps(kv_token_s);
  tables.pair_ps = {to_ps(pair_s)};
  tables.floor =
      make_floor(shape, options.weight_precision, options.kv_precision, device, options.tensor_parallel);
  if (device.host_link_bytes_per_s > 0)
    tables.transfer = {to_ps(kTransferFixedUs * 1e-6),
                       to_ps(kv_bytes_per_token(part, options.kv_precision) * options.block_tokens /
                             device.host_link_bytes_per_s)};
  return make_table_cost(std::move(tables));
}

}  // namespace foretoken

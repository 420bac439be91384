#include "models/deployment.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

std::string gib(double bytes) { return short_number(bytes / 1073741824.0) + " GiB"; }

/// Peak of a step's intermediates: residual, normed and attention rows, both FFN branches in 16 bits, and
/// f32 logits of the sampled rows. Engines measure this with a dummy step; within tens of per cent this is
/// what they find.
double activation_bytes(const ModelShape& part, const DeploymentOptions& options) {
  const double row_numbers =
      4.0 * part.hidden + 3.0 * part.ffn + (part.heads + 2.0 * part.kv_heads) * part.head_dim;
  return static_cast<double>(options.batch_tokens_max) * row_numbers * 2.0 +
         static_cast<double>(options.sequences_max) * part.vocab * 4.0;
}

}  // namespace

Deployment plan_deployment(const ModelShape& shape, const DeviceSheet& device,
                           const DeploymentOptions& options) {
  if (!(device.memory_bytes > 0)) throw input_error("device " + device.name, "memory_bytes above 0", "none");
  const ModelShape part = shard_shape(shape, options.tensor_parallel);
  Deployment deployment;
  deployment.weight_bytes = weight_bytes(part, options.weight_precision);
  deployment.activation_bytes = activation_bytes(part, options);
  deployment.kv_bytes_per_block = kv_bytes_per_token(part, options.kv_precision) * options.block_tokens;
  deployment.price_per_hour = device.price_per_hour * options.tensor_parallel;
  const double usable = device.memory_bytes * options.memory_utilization;
  const double taken = deployment.weight_bytes + deployment.activation_bytes + options.runtime_bytes;
  const double left = usable - taken;
  if (left < deployment.kv_bytes_per_block)
    throw InfeasibleError(
        shape.name + " in " + std::string(precision_name(options.weight_precision)) + " does not fit on " +
        std::to_string(options.tensor_parallel) + " x " + device.name + ": each device needs " +
        gib(deployment.weight_bytes) + " for weights, " + gib(deployment.activation_bytes) +
        " for activations and " + gib(options.runtime_bytes) + " for the runtime, and may use " +
        gib(usable) + "; " + gib(deployment.kv_bytes_per_block - left) +
        " are missing for even one KV block (split over more devices or use a narrower precision)");
  deployment.blocks_total = static_cast<std::int64_t>(std::floor(left / deployment.kv_bytes_per_block));
  return deployment;
}

}  // namespace foretoken

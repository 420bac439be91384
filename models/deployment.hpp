#pragma once
#include <cstdint>

#include "models/device.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// A model on devices, and how their memory is shared out.
struct DeploymentOptions {
  std::int32_t tensor_parallel = 1;              ///< Devices that share each layer.
  Precision weight_precision = Precision::bf16;  ///< Weights.
  Precision kv_precision = Precision::bf16;      ///< KV cache.
  std::int32_t block_tokens = 16;                ///< Tokens per KV block.
  double memory_utilization = 0.9;               ///< Share of device memory that the engine may use.
  std::int64_t batch_tokens_max = 2048;          ///< Tokens of the largest step, which size the activations.
  std::int32_t sequences_max = 256;              ///< Rows of logits held at once.
  double runtime_bytes = 1.5e9;                  ///< Device context, libraries, graphs, per device.
};

/// What is left for the KV cache, per device.
struct Deployment {
  double weight_bytes = 0;        ///< Weights of one device.
  double activation_bytes = 0;    ///< Estimated peak of activations and logits.
  double kv_bytes_per_block = 0;  ///< One block's keys and values on one device.
  std::int64_t blocks_total = 0;  ///< Blocks of the pool.
  double price_per_hour = 0;      ///< All devices together; 0 where unknown.
};

/// Divides the memory. InfeasibleError says by how much it falls short when weights and activations leave
/// no room for one sequence of one block, or when the model cannot be split into that many parts;
/// InputError when the device's memory is unknown.
[[nodiscard]] Deployment plan_deployment(const ModelShape& shape, const DeviceSheet& device,
                                         const DeploymentOptions& options);

}  // namespace foretoken

#include "backend/cpu/memory_needs.hpp"

#include <algorithm>

#include "backend/calibrate.hpp"
#include "backend/cpu/model.hpp"
#include "backend/cpu/runtime.hpp"
#include "backend/cpu/weights.hpp"
#include "backend/live_run.hpp"
#include "kernels/cpu/isa.hpp"
#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

double count(std::int64_t n) { return static_cast<double>(n); }

std::string mebibytes(double bytes) {
  const double mib = bytes / 1048576.0;
  return (mib < 1e15 ? with_commas(static_cast<std::int64_t>(mib)) : to_text(mib)) + " MiB";
}

/// Buffers of a step, as the transformer makes them.
double activation_bytes(const ModelShape& shape, ElementType type, const DecoderOptions& options) {
  const double input = count(element_bytes(cpu::activation_type(cpu::active_isa(), type)));
  const double query = count(std::int64_t{shape.heads} * shape.head_dim);
  const double pair = count(std::int64_t{2} * shape.kv_heads * shape.head_dim);
  const double row = shape.hidden * (4 + input) + (query + pair) * 4 + 2 * query * input + shape.ffn * input;
  const double rotary = 4.0 * options.tokens_max * shape.head_dim;
  return count(options.rows) * row + count(options.sequences) * shape.vocab * 4 + rotary;
}

MemoryNeeds needs_of(const ModelShape& shape, ElementType type, const DecoderOptions& options) {
  MemoryNeeds needs = weights_memory(shape, type);
  // With each block its number in a list.
  const double block =
      count(static_cast<std::int64_t>(kv_layout(shape, type, options.block_tokens).block_bytes())) + 4;
  const MemoryNeeds pools = {{"KV pool", (count(options.kv_blocks) + 1) * block},
                             {"swap pool", count(options.host_blocks) * block},
                             {"activations", activation_bytes(shape, type, options)}};
  double later = 0;
  for (const MemoryPart& part : pools) later += part.bytes;
  // The tensor on its way is gone when the pools are made.
  needs.back().bytes = std::max(0.0, needs.back().bytes - later);
  needs.insert(needs.begin() + 1, pools.begin(), pools.end());
  return needs;
}

}  // namespace

ElementType live_type(const Scenario& scenario) {
  return scenario.deployment.weight_precision == Precision::f32 ? ElementType::f32 : ElementType::bf16;
}

MemoryNeeds weights_memory(const ModelShape& shape, ElementType type) {
  const double widest = std::max({count(shape.vocab), count(shape.ffn), count(shape.heads) * shape.head_dim});
  return {{"weights", count(static_cast<std::int64_t>(weight_bytes(shape, type)))},
          {"a tensor while weights are made", widest * shape.hidden * 4}};
}

MemoryNeeds live_memory(const Scenario& scenario) {
  const Policy& policy = scenario.policy();
  const double pool_tokens = count(scenario.capacity.kv_blocks) * policy.block_tokens;
  const auto tokens_max =
      static_cast<std::int32_t>(std::min(count(scenario.capacity.model_tokens_max), pool_tokens));
  return needs_of(*scenario.shape, live_type(scenario), decoder_options(scenario, tokens_max));
}

MemoryNeeds calibration_memory(const Scenario& scenario, const CalibrationOptions& options) {
  return needs_of(*scenario.shape, live_type(scenario), sweep_options(options));
}

void check_memory(const MemoryNeeds& needs) {
  const double available = count(static_cast<std::int64_t>(available_memory_bytes()));
  double total = 0;
  std::string parts;
  for (const MemoryPart& part : needs) {
    total += part.bytes;
    if (part.bytes > 0) parts += (parts.empty() ? "" : ", ") + part.name + " " + mebibytes(part.bytes);
  }
  if (available == 0 || total <= available) return;
  throw DeviceError("CPU backend: " + mebibytes(total) + " of memory needed (" + parts + "), " +
                    mebibytes(available) + " available");
}

}  // namespace foretoken

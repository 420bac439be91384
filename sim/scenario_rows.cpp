#include <limits>

#include "sim/base/check.hpp"
#include "sim/scenario.hpp"

namespace foretoken {
namespace {

constexpr double kWholeMax = 9007199254740992.0;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr std::string_view kPrecisions = "f32|bf16|f16|fp8|int8|int4";

constexpr Field kTopRows[] = {
    text_field("$schema", "null", "Where the schema of this file lies; for editors"),
    text_field("name", "", "Short name, by what it shows"),
    text_field("description", "", "One or two sentences"),
    text_field("model", "null", "A shipped model, or a path to a Hugging Face config.json"),
    text_field("device", "null", "A shipped device, or a path to a device sheet"),
    integer_field("seed", "", 0, kWholeMax, "1", "Seed of the first replicate"),
    integer_field("replicates", "runs", 1, 1000, "1", "Runs with consecutive seeds, for intervals"),
    number_field("horizon_s", "s", 1e-9, 9e6, "null",
                 "The run is cut here; default: when everything has ended"),
};

constexpr Field kDeploymentRows[] = {
    integer_field("tensor_parallel", "devices", 1, 1024, "1", "Devices that share each layer"),
    choice_field("weight_precision", kPrecisions, "bf16", "Number format of the weights"),
    choice_field("kv_precision", kPrecisions, "bf16", "Number format of keys and values"),
    number_field("runtime_gib", "GiB", 0, 1e6, "1.4",
                 "Device memory of the runtime: context, libraries, graphs"),
};

constexpr Field kMemoryRows[] = {
    integer_field("kv_blocks", "blocks", 1, kWholeMax, "null",
                  "Blocks of the KV pool; default: num_gpu_blocks_override, else what memory leaves"),
    integer_field("host_blocks", "blocks", 0, kWholeMax, "null",
                  "Blocks of the host pool for swap; default: what swap_space holds"),
    boolean_field("transfers_overlap", "false", "Swap copies run beside the steps instead of before them"),
};

constexpr Field kRooflineRows[] = {
    number_field("flops_efficiency", "", 0.01, 1, "0.7", "Share of peak that products reach"),
    number_field("bandwidth_efficiency", "", 0.01, 1, "0.8", "Share of the bandwidth that streaming reaches"),
    number_field("step_fixed_us", "us", 0, 1e9, "1000", "Host time of each step"),
    number_field("layer_fixed_us", "us", 0, 1e9, "15", "Small kernels of each layer"),
    number_field("peer_latency_us", "us", 0, 1e9, "8", "Latency of one all-reduce"),
};

constexpr Field kAffineRows[] = {
    number_field("step_us", "us", 0, kUnbounded, "0", "Every step"),
    number_field("token_us", "us", 0, kUnbounded, "0", "Per computed token, padding and dead rows included"),
    number_field("context_token_us", "us", 0, kUnbounded, "0",
                 "Per context token that a decode or a chunk reads"),
    number_field("chunk_us", "us", 0, kUnbounded, "0", "Per prefill chunk"),
    number_field("pair_us", "us", 0, kUnbounded, "0", "Per query-key pair of a chunk"),
    number_field("sampled_row_us", "us", 0, kUnbounded, "0", "Per row through the LM head"),
    number_field("transfer_us", "us", 0, kUnbounded, "0", "Per swap transfer"),
    number_field("transfer_block_us", "us", 0, kUnbounded, "0", "Per block of a swap transfer"),
};

constexpr Field kMetricsRows[] = {
    integer_field("exact_requests_max", "requests", 0, kWholeMax, "4000000",
                  "Finished requests up to which percentiles are exact"),
    integer_field("bootstrap_resamples", "resamples", 0, 100000, "400",
                  "Resamples of the moving-block bootstrap for a fixed trace; 0: no intervals"),
    integer_field("bootstrap_block", "requests", 0, kWholeMax, "0",
                  "Requests in a block of the bootstrap; 0: chosen from the run"),
};

}  // namespace

std::span<const Field> scenario_fields(std::string_view section) {
  if (section.empty()) return kTopRows;
  if (section == "deployment") return kDeploymentRows;
  if (section == "memory") return kMemoryRows;
  if (section == "cost.roofline") return kRooflineRows;
  if (section == "cost.affine") return kAffineRows;
  FT_CHECK(section == "metrics", section);
  return kMetricsRows;
}

}  // namespace foretoken

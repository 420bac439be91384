#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/step_features.hpp"
#include "sim/base/json.hpp"

namespace foretoken {

/// Number format of weights or KV entries.
enum class Precision : std::uint8_t { f32, bf16, f16, fp8, int8, int4 };

/// "f32", "bf16", "f16", "fp8", "int8" or "int4".
[[nodiscard]] std::string_view precision_name(Precision precision);
/// The precision of that name (aliases "fp32", "float32", "bfloat16", "fp16", "float16", "half"); an
/// InputError that starts with `place` and lists the names otherwise.
[[nodiscard]] Precision parse_precision(std::string_view name, std::string_view place);
/// Bytes per stored number, 0.5 for int4; scales of quantised formats are not counted.
[[nodiscard]] double bytes_per_number(Precision precision);

/// Dimensions of a dense Llama-family decoder (RMSNorm, RoPE, grouped-query attention, SwiGLU).
struct ModelShape {
  std::string name;               ///< As asked for: a shipped name, or the folder or file it came from.
  std::int32_t hidden = 0;        ///< Width of the residual stream.
  std::int32_t layers = 0;        ///< Decoder layers.
  std::int32_t heads = 0;         ///< Query heads.
  std::int32_t kv_heads = 0;      ///< Key and value heads; divides `heads`.
  std::int32_t head_dim = 0;      ///< Width of one head.
  std::int32_t ffn = 0;           ///< Inner width of the feed-forward block.
  std::int32_t vocab = 0;         ///< Rows of the embedding and of the LM head.
  std::int32_t max_position = 0;  ///< Longest sequence in tokens.
  double rope_theta = 10000.0;    ///< Base of the rotary embedding.
  double norm_eps = 1e-5;         ///< Epsilon of RMSNorm.
  bool tied_embeddings = false;   ///< The LM head shares the embedding's weights.
  bool qkv_bias = false;          ///< The three attention inputs have biases (Qwen2).
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

/// Reads the keys of a Hugging Face `config.json` that this project understands; other keys are ignored,
/// since the file is foreign. `model_type` or `architectures` must name llama, mistral or qwen2. A sliding
/// window in use caps `max_position`, because within the window attention is full. Errors: InputError with
/// `place` and key.
[[nodiscard]] ModelShape shape_from_hf(const Json& config, std::string_view place, std::string_view name);
/// The shape as a Hugging Face `config.json`; `shape_from_hf` reads it back equal.
[[nodiscard]] Json shape_to_hf(const ModelShape& shape);

/// Finds a shape: a path to a `config.json` or to a folder that holds one, else `<name>.json` in
/// `data_folder` (models/data of the source or install tree). An unknown name is an InputError that lists
/// the shipped ones.
[[nodiscard]] ModelShape find_shape(const std::string& name_or_path, const std::string& data_folder);
/// Names of the files `<name>.json` in a folder, sorted.
[[nodiscard]] std::vector<std::string> json_names(const std::string& folder);

/// All parameters of the model, each counted once.
[[nodiscard]] std::int64_t parameters_total(const ModelShape& shape);
/// Parameters of the layers' products alone (attention inputs and output, three FFN matrices).
[[nodiscard]] std::int64_t layer_parameters(const ModelShape& shape);
/// Parameters of the LM head: vocab x hidden.
[[nodiscard]] std::int64_t head_parameters(const ModelShape& shape);
/// Bytes of all weights; int4 and other quantised formats keep embedding, head, norms and biases in bf16.
[[nodiscard]] double weight_bytes(const ModelShape& shape, Precision precision);
/// Weight bytes that one step reads whatever its batch: layers, norms and LM head, not the embedding's
/// rows.
[[nodiscard]] double streamed_weight_bytes(const ModelShape& shape, Precision precision);
/// What one of `parts` tensor-parallel devices holds of a model: heads, key-value heads (replicated when
/// there are more devices), inner width and vocabulary divided. InfeasibleError when they do not divide.
[[nodiscard]] ModelShape shard_shape(const ModelShape& shape, std::int32_t parts);
/// Bytes of keys and values of one token over all layers.
[[nodiscard]] double kv_bytes_per_token(const ModelShape& shape, Precision precision);

/// Query-key pairs of causal attention in a step, the token itself included: what attention computes per
/// head.
[[nodiscard]] std::int64_t attention_pairs(const StepFeatures& features);
/// Tokens whose keys and values attention reads in a step.
[[nodiscard]] std::int64_t attended_tokens(const StepFeatures& features);
/// Useful floating point operations of a step: 2 per weight of the layers and computed token, 2 per weight
/// of the head and sampled row, 4 per query head, head dimension, layer and pair.
[[nodiscard]] double step_flops(const ModelShape& shape, const StepFeatures& features);

}  // namespace foretoken

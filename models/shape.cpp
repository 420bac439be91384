#include "models/shape.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr std::array<std::string_view, 6> kPrecisionNames = {"f32", "bf16", "f16", "fp8", "int8", "int4"};
constexpr std::array<double, 6> kPrecisionBytes = {4, 2, 2, 1, 1, 0.5};
constexpr std::int64_t kDimensionMax = 1 << 24;

struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool qkv_bias;
};
constexpr std::array<Family, 3> kFamilies = {{{"llama", "LlamaForCausalLM", false},
                                              {"mistral", "MistralForCausalLM", false},
                                              {"qwen2", "Qwen2ForCausalLM", true}}};

std::string in_quotes(std::string_view text) {
  std::string result("\"");
  return result.append(text).append("\"");
}

const Family& family_of(const Json& config, JsonReader& reader) {
  const Json* type = config.find("model_type");
  const Json* architectures = config.find("architectures");
  std::string found = "none";
  if (architectures && architectures->is_array() && !architectures->as_array().empty() &&
      architectures->as_array().front().is_string()) {
    found = in_quotes(architectures->as_array().front().as_string());
    for (const Family& family : kFamilies)
      if (found == in_quotes(family.architecture)) return family;
  } else if (type && type->is_string()) {
    found = in_quotes(type->as_string());
    for (const Family& family : kFamilies)
      if (found == in_quotes(family.model_type)) return family;
  }
  reader.fail(architectures ? "architectures" : "model_type",
              "LlamaForCausalLM, MistralForCausalLM or Qwen2ForCausalLM (model_type llama, mistral or qwen2)",
              found);
}

std::int32_t dimension(JsonReader& reader, std::string_view key) {
  return static_cast<std::int32_t>(reader.integer(key, 1, kDimensionMax));
}

std::int32_t dimension(JsonReader& reader, std::string_view key, std::int64_t fallback) {
  return static_cast<std::int32_t>(reader.integer(key, fallback, 1, kDimensionMax));
}

/// Newer files keep the base in an object of its own.
double rope_theta_of(JsonReader& reader) {
  const double nested = reader.child("rope_parameters").number("rope_theta", 10000.0, 1.0, 1e12);
  return reader.number("rope_theta", nested, 1.0, 1e12);
}

}  // namespace

std::string_view precision_name(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

Precision parse_precision(std::string_view name, std::string_view place) {
  for (std::size_t i = 0; i < kPrecisionNames.size(); ++i)
    if (name == kPrecisionNames[i]) return static_cast<Precision>(i);
  if (name == "fp32" || name == "float32") return Precision::f32;
  if (name == "bfloat16") return Precision::bf16;
  if (name == "fp16" || name == "float16" || name == "half") return Precision::f16;
  throw input_error(place, "one of f32, bf16, f16, fp8, int8, int4", in_quotes(name));
}

double bytes_per_number(Precision precision) { return kPrecisionBytes[static_cast<std::size_t>(precision)]; }

ModelShape shape_from_hf(const Json& config, std::string_view place, std::string_view name) {
  JsonReader reader(config, std::string(place));
  if (!config.is_object()) reader.fail("", "an object", config.describe());
  const Family& family = family_of(config, reader);
  ModelShape shape;
  shape.name = name;
  shape.hidden = dimension(reader, "hidden_size");
  shape.layers = dimension(reader, "num_hidden_layers");
  shape.heads = dimension(reader, "num_attention_heads");
  shape.kv_heads = dimension(reader, "num_key_value_heads", shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    reader.fail("num_key_value_heads",
                "a divisor of num_attention_heads (" + std::to_string(shape.heads) + ")",
                std::to_string(shape.kv_heads));
  shape.head_dim = dimension(reader, "head_dim", 0);
  if (shape.head_dim == 0 && shape.hidden % shape.heads != 0)
    reader.fail("hidden_size", "a multiple of num_attention_heads, or a head_dim",
                std::to_string(shape.hidden));
  if (shape.head_dim == 0) shape.head_dim = shape.hidden / shape.heads;
  shape.ffn = dimension(reader, "intermediate_size");
  shape.vocab = dimension(reader, "vocab_size");
  shape.max_position = dimension(reader, "max_position_embeddings", 2048);
  if (reader.boolean("use_sliding_window", true))
    shape.max_position =
        std::min(shape.max_position, dimension(reader, "sliding_window", shape.max_position));
  shape.rope_theta = rope_theta_of(reader);
  shape.norm_eps = reader.number("rms_norm_eps", 1e-6, 0.0, 1.0);
  shape.tied_embeddings = reader.boolean("tie_word_embeddings", false);
  shape.qkv_bias = reader.boolean("attention_bias", family.qkv_bias);
  return shape;
}

Json shape_to_hf(const ModelShape& shape) {
  const bool is_qwen2 = shape.qkv_bias;
  return Json::object({{"architectures", Json::array({is_qwen2 ? "Qwen2ForCausalLM" : "LlamaForCausalLM"})},
                       {"model_type", is_qwen2 ? "qwen2" : "llama"},
                       {"hidden_size", shape.hidden},
                       {"num_hidden_layers", shape.layers},
                       {"num_attention_heads", shape.heads},
                       {"num_key_value_heads", shape.kv_heads},
                       {"head_dim", shape.head_dim},
                       {"intermediate_size", shape.ffn},
                       {"vocab_size", shape.vocab},
                       {"max_position_embeddings", shape.max_position},
                       {"rope_theta", shape.rope_theta},
                       {"rms_norm_eps", shape.norm_eps},
                       {"tie_word_embeddings", shape.tied_embeddings}});
}

std::vector<std::string> json_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".json") names.push_back(entry->path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

ModelShape find_shape(const std::string& name_or_path, const std::string& data_folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path path(name_or_path);
  if (fs::is_directory(path, error)) return find_shape((path / "config.json").string(), data_folder);
  if (path.extension() == ".json" || path.has_parent_path()) {
    const bool named_by_folder = path.stem() == "config" && path.has_parent_path();
    const std::string name = named_by_folder ? path.parent_path().filename().string() : path.stem().string();
    return shape_from_hf(Json::parse_file(name_or_path), name_or_path, name);
  }
  const std::vector<std::string> names = json_names(data_folder);
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw input_error("model", "a path to a config.json, or one of " + known, in_quotes(name_or_path));
  }
  const std::string file = (fs::path(data_folder) / (name_or_path + ".json")).string();
  return shape_from_hf(Json::parse_file(file), file, name_or_path);
}

std::int64_t layer_parameters(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  const std::int64_t query_width = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t kv_width = std::int64_t{shape.kv_heads} * shape.head_dim;
  return shape.layers * hidden * (2 * query_width + 2 * kv_width + 3 * std::int64_t{shape.ffn});
}

std::int64_t head_parameters(const ModelShape& shape) { return std::int64_t{shape.vocab} * shape.hidden; }

namespace {

/// Parameters of norms and biases.
std::int64_t vector_parameters(const ModelShape& shape) {
  const std::int64_t bias = std::int64_t{shape.heads + 2 * shape.kv_heads} * shape.head_dim;
  return shape.layers * (2 * std::int64_t{shape.hidden} + (shape.qkv_bias ? bias : 0)) + shape.hidden;
}

/// Formats narrower than 16 bits are used for the layers' products only.
double outer_bytes(Precision precision) { return std::max(2.0, bytes_per_number(precision)); }

}  // namespace

std::int64_t parameters_total(const ModelShape& shape) {
  return layer_parameters(shape) + vector_parameters(shape) +
         head_parameters(shape) * (shape.tied_embeddings ? 1 : 2);
}

double weight_bytes(const ModelShape& shape, Precision precision) {
  return streamed_weight_bytes(shape, precision) +
         (shape.tied_embeddings ? 0.0 : static_cast<double>(head_parameters(shape)) * outer_bytes(precision));
}

double streamed_weight_bytes(const ModelShape& shape, Precision precision) {
  return static_cast<double>(layer_parameters(shape)) * bytes_per_number(precision) +
         static_cast<double>(vector_parameters(shape) + head_parameters(shape)) * outer_bytes(precision);
}

ModelShape shard_shape(const ModelShape& shape, std::int32_t parts) {
  const bool kv_splits = shape.kv_heads % parts == 0 || parts % shape.kv_heads == 0;
  if (shape.heads % parts != 0 || shape.ffn % parts != 0 || !kv_splits)
    throw InfeasibleError(shape.name + " cannot be split over " + std::to_string(parts) +
                          " devices: " + std::to_string(shape.heads) + " heads, " +
                          std::to_string(shape.kv_heads) + " key-value heads and an inner width of " +
                          std::to_string(shape.ffn) + " do not divide evenly");
  ModelShape part = shape;
  part.heads /= parts;
  part.kv_heads = std::max(1, shape.kv_heads / parts);
  part.ffn /= parts;
  part.vocab = (shape.vocab + parts - 1) / parts;
  return part;
}

double kv_bytes_per_token(const ModelShape& shape, Precision precision) {
  return 2.0 * shape.layers * shape.kv_heads * shape.head_dim * bytes_per_number(precision);
}

std::int64_t attention_pairs(const StepFeatures& features) {
  std::int64_t pairs = features.decode_context_sum + features.decode_count;
  for (const ChunkFeatures& chunk : features.chunks) {
    const std::int64_t tokens = chunk.tokens;
    pairs += tokens * chunk.context + tokens * (tokens + 1) / 2;
  }
  return pairs;
}

std::int64_t attended_tokens(const StepFeatures& features) {
  std::int64_t tokens = features.decode_context_sum + features.decode_count;
  for (const ChunkFeatures& chunk : features.chunks) tokens += std::int64_t{chunk.context} + chunk.tokens;
  return tokens;
}

double step_flops(const ModelShape& shape, const StepFeatures& features) {
  const std::int64_t padding = features.padded_tokens + features.padded_rows;
  const double useful_tokens = static_cast<double>(computed_tokens(features) - padding);
  const double useful_rows = std::max(0, features.sampled_rows - features.padded_rows);
  const double pair_flops = 4.0 * shape.layers * shape.heads * shape.head_dim;
  return 2.0 * static_cast<double>(layer_parameters(shape)) * useful_tokens +
         2.0 * static_cast<double>(head_parameters(shape)) * useful_rows +
         pair_flops * static_cast<double>(attention_pairs(features));
}

}  // namespace foretoken

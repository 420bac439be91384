#include "models/shape.hpp"

#include "sim/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

ModelShape parse(const std::string& text) {
  return shape_from_hf(Json::parse(text, "config.json"), "config.json", "x");
}

const std::string kQwen =
    R"({"architectures": ["Qwen2ForCausalLM"], "hidden_size": 896, "num_hidden_layers": 24,
  "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936,
  "max_position_embeddings": 32768, "rope_theta": 1000000.0,
  "rms_norm_eps": 1e-06, "tie_word_embeddings": true,
  "sliding_window": 4096, "use_sliding_window": false, "torch_dtype": "bfloat16", "hidden_act": "silu"})";

}  // namespace

TEST_CASE("the shipped shapes have the published numbers of parameters", "[golden]") {
  CHECK(parameters_total(find_shape("llama-3.1-8b", kDataFolder)) == 8030261248);
  CHECK(parameters_total(find_shape("llama-3.1-70b", kDataFolder)) == 70553706496);
  CHECK(parameters_total(parse(kQwen)) == 494032768);
  const ModelShape m100 = find_shape("m100", kDataFolder);
  CHECK(layer_parameters(m100) + head_parameters(m100) == 98566144);
  CHECK(kv_bytes_per_token(find_shape("llama-3.1-8b", kDataFolder), Precision::bf16) == 131072);
}

TEST_CASE("weights are priced by format, with embeddings and head kept at 16 bits below that") {
  const ModelShape shape = find_shape("llama-3.1-8b", kDataFolder);
  CHECK(weight_bytes(shape, Precision::bf16) == 2.0 * 8030261248);
  CHECK(weight_bytes(shape, Precision::f32) == 4.0 * 8030261248);
  CHECK(weight_bytes(shape, Precision::fp8) ==
        2.0 * 8030261248 - static_cast<double>(layer_parameters(shape)));
  CHECK(streamed_weight_bytes(shape, Precision::bf16) == 2.0 * 7504924672);
  const ModelShape tied = parse(kQwen);
  CHECK(streamed_weight_bytes(tied, Precision::bf16) == weight_bytes(tied, Precision::bf16));
}

TEST_CASE("a config.json is read with its defaults, and foreign keys are ignored") {
  const ModelShape qwen = parse(kQwen);
  CHECK(qwen.head_dim == 64);
  CHECK(qwen.qkv_bias);
  CHECK(qwen.max_position == 32768);
  const ModelShape old = parse(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10, "head_dim": null,
    "rope_parameters": {"rope_theta": 5.5}})");
  CHECK(old.kv_heads == 2);
  CHECK(old.head_dim == 32);
  CHECK(old.rope_theta == 5.5);
  const ModelShape windowed = parse(R"({"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 10, "sliding_window": 1024})");
  CHECK(windowed.max_position == 1024);
}

TEST_CASE("every shipped shape survives writing and reading") {
  for (const std::string& name : json_names(kDataFolder)) {
    const ModelShape shape = find_shape(name, kDataFolder);
    CHECK(shape_from_hf(shape_to_hf(shape), "x", name) == shape);
    CHECK(find_shape(kDataFolder + "/" + name + ".json", "") == shape);
  }
  CHECK(json_names(kDataFolder).size() >= 5);
}

TEST_CASE("a shape that cannot be served is refused with the key and what would do") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(parse(R"({"architectures": ["GPT2LMHeadModel"]})"),
                    Contains("LlamaForCausalLM") && Contains("GPT2LMHeadModel") && Contains("config.json:1"));
  CHECK_THROWS_WITH(parse("{}"), Contains("model_type"));
  CHECK_THROWS_AS(parse("[]"), InputError);
  CHECK_THROWS_WITH(parse(R"({"model_type": "llama", "hidden_size": 64})"), Contains("num_hidden_layers"));
  CHECK_THROWS_WITH(parse(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "num_key_value_heads": 3, "intermediate_size": 8, "vocab_size": 10})"),
                    Contains("num_key_value_heads"));
  CHECK_THROWS_AS(parse(R"({"model_type": "llama", "hidden_size": -4})"), InputError);
  CHECK_THROWS_WITH(find_shape("m26", kDataFolder), Contains("m25"));
}

TEST_CASE("precisions are known by their common names") {
  CHECK(parse_precision("bfloat16", "x") == Precision::bf16);
  CHECK(parse_precision("float32", "x") == Precision::f32);
  for (const Precision precision :
       {Precision::f32, Precision::bf16, Precision::f16, Precision::fp8, Precision::int4})
    CHECK(parse_precision(precision_name(precision), "x") == precision);
  CHECK_THROWS_AS(parse_precision("bf17", "--dtype"), InputError);
}

TEST_CASE("useful work does not count padding") {
  const ModelShape shape = find_shape("m25", kDataFolder);
  StepShape step = prefill(50, 0, true);
  const double useful = step_flops(shape, step.features());
  step.padded_tokens = 100;
  CHECK(step_flops(shape, step.features()) == useful);
  CHECK(useful > 2.0 * 50 * static_cast<double>(layer_parameters(shape)));
}

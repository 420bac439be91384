#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/device.hpp"
#include "backend/tensors.hpp"
#include "kernels/element.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// Weights of one decoder layer, as the device's kernels read them.
template <class Device>
struct LayerWeights {
  using Matrix = typename DeviceTypes<Device>::Matrix;
  /// Q, K and V stacked: (heads + 2 kv_heads) head_dim outputs.
  Matrix qkv;
  /// Attention output to the residual stream.
  Matrix output;
  /// Gate and up.
  Matrix gate_up;
  /// Feed-forward output to the residual stream.
  Matrix down;
  /// [hidden]: RMSNorm weights before attention and before the feed-forward block.
  const float* attention_norm = nullptr;
  const float* ffn_norm = nullptr;
  /// [qkv outputs], or null where the model has no biases.
  const float* qkv_bias = nullptr;
};

/// A model's weights in the order in which a step streams them. Movable; pointers stay valid.
template <class Device>
struct Weights {
  ModelShape shape;
  /// Of the embedding and, unless they are quantised, of the matrices; norms and biases are f32.
  ElementType type = ElementType::bf16;
  std::vector<LayerWeights<Device>> layers;
  /// [vocab][hidden], row-major.
  const void* embedding = nullptr;
  typename DeviceTypes<Device>::Matrix head;
  /// [hidden].
  const float* final_norm = nullptr;
  /// What all of the above points into.
  std::vector<typename DeviceTypes<Device>::Memory> memory;
};

/// Where the rows of a source matrix go in the matrix of a layer.
enum class MatrixPart : std::uint8_t { stacked, gate, up };

/// Columns of Q, K and V together.
inline int qkv_columns(const ModelShape& shape) {
  return (shape.heads + 2 * shape.kv_heads) * shape.head_dim;
}

/// Brings the tensors of layer `number` to `sink`, which has
/// `matrix(spec, Matrix, MatrixPart, first_row)` and `vector(spec, const float* target)`. Random weights are
/// scaled so that activations and logits have a spread of about one.
template <class Device, class Sink>
void fill_layer(const ModelShape& shape, int number, const LayerWeights<Device>& layer, Sink& sink) {
  const std::string prefix = "model.layers." + std::to_string(number) + ".";
  const std::int64_t hidden = shape.hidden;
  const std::int64_t query = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t pair = std::int64_t{shape.kv_heads} * shape.head_dim;
  const float in = 1.0F / std::sqrt(static_cast<float>(hidden));
  // Two branches a layer add to the residual stream; scaled so that together they add about as much as it
  // began with.
  const float branch = 1.0F / std::sqrt(2.0F * static_cast<float>(shape.layers));
  const auto first_key = static_cast<int>(query);
  const auto first_value = static_cast<int>(query + pair);
  sink.vector({prefix + "input_layernorm.weight", hidden, 0, 1.0F, 0.0F}, layer.attention_norm);
  const std::string attention = prefix + "self_attn.";
  const auto stacked = MatrixPart::stacked;
  sink.matrix({attention + "q_proj.weight", query, hidden, 0.0F, in}, layer.qkv, stacked, 0);
  sink.matrix({attention + "k_proj.weight", pair, hidden, 0.0F, in}, layer.qkv, stacked, first_key);
  sink.matrix({attention + "v_proj.weight", pair, hidden, 0.0F, in}, layer.qkv, stacked, first_value);
  if (layer.qkv_bias != nullptr) {
    sink.vector({attention + "q_proj.bias", query, 0, 0.0F, 0.1F}, layer.qkv_bias);
    sink.vector({attention + "k_proj.bias", pair, 0, 0.0F, 0.1F}, layer.qkv_bias + first_key);
    sink.vector({attention + "v_proj.bias", pair, 0, 0.0F, 0.1F}, layer.qkv_bias + first_value);
  }
  const float output = branch / std::sqrt(static_cast<float>(query));
  sink.matrix({attention + "o_proj.weight", hidden, query, 0.0F, output}, layer.output, stacked, 0);
  sink.vector({prefix + "post_attention_layernorm.weight", hidden, 0, 1.0F, 0.0F}, layer.ffn_norm);
  sink.matrix({prefix + "mlp.gate_proj.weight", shape.ffn, hidden, 0.0F, in}, layer.gate_up, MatrixPart::gate,
              0);
  sink.matrix({prefix + "mlp.up_proj.weight", shape.ffn, hidden, 0.0F, in}, layer.gate_up, MatrixPart::up, 0);
  const float down = branch / std::sqrt(static_cast<float>(shape.ffn));
  sink.matrix({prefix + "mlp.down_proj.weight", hidden, shape.ffn, 0.0F, down}, layer.down, stacked, 0);
}

/// Brings all tensors to `sink`, which also has `rows(spec, const void* target, ElementType)`, in the order
/// of a safetensors file, layer by layer.
template <class Device, class Sink>
void fill_weights(const Weights<Device>& weights, Sink& sink) {
  const ModelShape& shape = weights.shape;
  const std::int64_t hidden = shape.hidden;
  const float in = 1.0F / std::sqrt(static_cast<float>(hidden));
  const TensorSpec embedding{"model.embed_tokens.weight", shape.vocab, hidden, 0.0F,
                             shape.tied_embeddings ? in : 1.0F};
  sink.rows(embedding, weights.embedding, weights.type);
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    fill_layer(shape, static_cast<int>(i), weights.layers[i], sink);
  sink.vector({"model.norm.weight", hidden, 0, 1.0F, 0.0F}, weights.final_norm);
  sink.matrix(shape.tied_embeddings ? embedding : TensorSpec{"lm_head.weight", shape.vocab, hidden, 0.0F, in},
              weights.head, MatrixPart::stacked, 0);
}

}  // namespace foretoken

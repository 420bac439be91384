#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/runtime.hpp"
#include "kernels/cpu/packed.hpp"
#include "kernels/element.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// Weights of one decoder layer, packed for the kernels.
struct LayerWeights {
  /// Q, K and V stacked: (heads + 2 kv_heads) head_dim outputs.
  cpu::PackedMatrix qkv;
  /// Attention output to the residual stream.
  cpu::PackedMatrix output;
  /// Gate and up, interleaved for Epilogue::silu_mul.
  cpu::PackedMatrix gate_up;
  /// Feed-forward output to the residual stream.
  cpu::PackedMatrix down;
  /// [hidden]: RMSNorm weights before attention and before the feed-forward block.
  const float* attention_norm = nullptr;
  const float* ffn_norm = nullptr;
  /// [qkv outputs], or null where the model has no biases.
  const float* qkv_bias = nullptr;
};

/// A model's weights in the order in which a step streams them. Movable; pointers stay valid.
struct Weights {
  ModelShape shape;
  /// Of the matrices and the embedding; norms and biases are f32.
  ElementType type = ElementType::bf16;
  std::vector<LayerWeights> layers;
  /// [vocab][hidden], row-major.
  const void* embedding = nullptr;
  cpu::PackedMatrix head;
  /// [hidden].
  const float* final_norm = nullptr;
  /// What all of the above points into.
  std::vector<cpu::Buffer> memory;
};

/// Seeded random weights: each number is a pure function of (seed, tensor name, position), the same for every
/// element type before rounding. Scaled so that activations and logits have a spread of about one.
/// DeviceError when memory is short. Once `stop` is set (it may be null) the rest is left as it is.
Weights random_weights(const ModelShape& shape, ElementType type, std::uint64_t seed, Runtime<Cpu>& runtime,
                       const std::atomic<bool>* stop = nullptr);

/// Bytes that a model's weights take.
std::size_t weight_bytes(const ModelShape& shape, ElementType type);

/// Weights from `model.safetensors`, or the shards of `model.safetensors.index.json`, in `folder`, under the
/// names of Hugging Face; BF16, F16 and F32 are read and rounded to `type`. A missing, misshapen or malformed
/// tensor or file is an InputError that says what was expected and what was found.
Weights load_weights(const std::string& folder, const ModelShape& shape, ElementType type,
                     Runtime<Cpu>& runtime);

}  // namespace foretoken

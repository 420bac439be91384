#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cpu/runtime.hpp"
#include "backend/weights.hpp"
#include "kernels/cpu/packed.hpp"

namespace foretoken {

/// Matrices are packed for the kernels; gate and up are interleaved for Epilogue::silu_mul.
template <>
struct DeviceTypes<Cpu> {
  using Matrix = cpu::PackedMatrix;
  using Memory = cpu::Buffer;
};

/// Seeded random weights: each number is a pure function of (seed, tensor name, position), the same for every
/// element type before rounding. DeviceError when memory is short. Once `stop` is set (it may be null) the
/// rest is left as it is.
Weights<Cpu> random_weights(const ModelShape& shape, ElementType type, std::uint64_t seed,
                            Runtime<Cpu>& runtime, const std::atomic<bool>* stop = nullptr);

/// Bytes that a model's weights take.
std::size_t weight_bytes(const ModelShape& shape, ElementType type);

/// Weights from `model.safetensors`, or the shards of `model.safetensors.index.json`, in `folder`, under the
/// names of Hugging Face; BF16, F16 and F32 are read and rounded to `type`. A missing, misshapen or malformed
/// tensor or file is an InputError that says what was expected and what was found.
Weights<Cpu> load_weights(const std::string& folder, const ModelShape& shape, ElementType type,
                          Runtime<Cpu>& runtime);

}  // namespace foretoken

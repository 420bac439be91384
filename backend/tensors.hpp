#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/runtime.hpp"
#include "kernels/element.hpp"

namespace foretoken {

/// A tensor that a model needs, under its Hugging Face name.
struct TensorSpec {
  std::string name;
  /// [rows][columns] row-major; `columns` 0 is a vector of `rows` numbers.
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  /// What random weights make of it: uniform with this mean and standard deviation.
  float mean = 0.0F;
  float spread = 0.0F;

  std::int64_t elements() const { return rows * (columns == 0 ? 1 : columns); }
};

/// A tensor's numbers, row-major; aligned to their size.
struct TensorView {
  const void* data = nullptr;
  ElementType type = ElementType::f32;
};

/// Where weights come from.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// The numbers of a tensor; the view lives until the next call. InputError when the source has no such
  /// tensor of that shape.
  virtual TensorView tensor(const TensorSpec& spec) = 0;
};

/// Random numbers: element i of a tensor is a pure function of (seed, name, i).
std::unique_ptr<TensorSource> random_tensors(std::uint64_t seed, Runtime<Cpu>& runtime);

/// The tensors of a Hugging Face folder: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` lists. All headers are read and checked at once: length, JSON, types,
/// offsets without overlap or gap. Types other than BF16, F16 and F32 are refused only where such a tensor is
/// asked for.
std::unique_ptr<TensorSource> safetensors_folder(const std::string& folder);

}  // namespace foretoken

#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/element.hpp"

namespace foretoken::cpu {

/// Columns that stand side by side in a packed matrix; products are split over threads in this unit.
inline constexpr int kGroupColumns = 32;

/// A weight matrix W[columns, depth] as products read it, the same for every ISA: groups of 32 output
/// columns, each a single stream over the depth. f32: [group][depth][32]; bf16: [group][depth / 2][32][2], a
/// pair of depths side by side. The last group is filled up with zeros. Points into memory that someone else
/// owns (aligned to 64 bytes).
struct PackedMatrix {
  void* data = nullptr;
  ElementType type = ElementType::bf16;
  /// Outputs: N of y[M,N] = x[M,K] W[N,K]^T.
  int columns = 0;
  /// Inputs: K.
  int depth = 0;
};

/// Bytes of a packed matrix, padding included; a multiple of 64.
std::size_t packed_bytes(ElementType type, int columns, int depth);

/// Where the rows of a source matrix go in the packed one.
enum class Columns {
  /// Row r becomes column first + r: whole matrices, and Q, K, V stacked on one another.
  stacked,
  /// Row r becomes the gate of output r: column 32 (r / 16) + r % 16. For `Epilogue::silu_mul`.
  gate,
  /// Row r becomes the up value of output r: column 32 (r / 16) + 16 + r % 16.
  up,
};

/// Columns of a packed gate-and-up matrix for `features` outputs: both halves filled up to 16.
constexpr int gate_up_columns(int features) { return (features + 15) / 16 * 32; }

/// Copies `rows` source rows (row-major, `depth` of the packed matrix elements each, of type `source_type`)
/// into `packed`, rounding f32 to bf16 where that is what it holds. Columns never written must be zero
/// beforehand (as in a fresh Buffer). `first` is only used by `Columns::stacked`.
void pack_rows(const PackedMatrix& packed, const void* source, ElementType source_type, int rows,
               Columns where, int first = 0);

/// Reads back column `column` of a packed matrix as floats (`depth` of them).
void unpack_column(const PackedMatrix& packed, int column, float* out);

/// A row stride in elements, at least `depth`, that keeps consecutive activation rows out of the same cache
/// sets. Products are correct with any stride and fastest with this one.
constexpr int activation_stride(int depth) {
  const int rounded = (depth + 31) / 32 * 32;
  return rounded % 1024 == 0 ? rounded + 32 : rounded;
}

}  // namespace foretoken::cpu

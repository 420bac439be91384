#include "kernels/cpu/packed.hpp"

#include <algorithm>

namespace foretoken::cpu {
namespace {

/// Elements of one group's stream: 32 columns times the depth, rounded up to a pair where pairs are stored.
std::int64_t group_elements(ElementType type, int depth) {
  const int stored_depth = type == ElementType::bf16 ? (depth + 1) / 2 * 2 : depth;
  return std::int64_t{kGroupColumns} * stored_depth;
}

int packed_column(int row, Columns where, int first) {
  if (where == Columns::stacked) return first + row;
  return row / 16 * 32 + row % 16 + (where == Columns::up ? 16 : 0);
}

float read_float(const void* source, ElementType type, std::int64_t index) {
  return type == ElementType::f32 ? static_cast<const float*>(source)[index]
                                  : to_float(static_cast<const Bf16*>(source)[index]);
}

}  // namespace

std::size_t packed_bytes(ElementType type, int columns, int depth) {
  const std::int64_t groups = (std::int64_t{columns} + kGroupColumns - 1) / kGroupColumns;
  return static_cast<std::size_t>(groups * group_elements(type, depth)) * element_bytes(type);
}

void pack_rows(const PackedMatrix& packed, const void* source, ElementType source_type, int rows,
               Columns where, int first) {
  const std::int64_t group_size = group_elements(packed.type, packed.depth);
  for (int row = 0; row < rows; ++row) {
    const int column = packed_column(row, where, first);
    const std::int64_t base = column / kGroupColumns * group_size;
    const int lane = column % kGroupColumns;
    for (int k = 0; k < packed.depth; ++k) {
      const float value = read_float(source, source_type, std::int64_t{row} * packed.depth + k);
      if (packed.type == ElementType::f32)
        static_cast<float*>(packed.data)[base + std::int64_t{k} * kGroupColumns + lane] = value;
      else
        static_cast<Bf16*>(packed.data)[base + (std::int64_t{k / 2} * kGroupColumns + lane) * 2 + k % 2] =
            to_bf16(value);
    }
  }
}

void unpack_column(const PackedMatrix& packed, int column, float* out) {
  const std::int64_t base = column / kGroupColumns * group_elements(packed.type, packed.depth);
  const int lane = column % kGroupColumns;
  for (int k = 0; k < packed.depth; ++k)
    out[k] = packed.type == ElementType::f32
                 ? static_cast<const float*>(packed.data)[base + std::int64_t{k} * kGroupColumns + lane]
                 : to_float(static_cast<const Bf16*>(
                       packed.data)[base + (std::int64_t{k / 2} * kGroupColumns + lane) * 2 + k % 2]);
}

}  // namespace foretoken::cpu

#pragma once
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cuda/kv_layout.hpp"
#include "kernels/cuda/small_floats.hpp"
#include "tests/kernels/kernel_fixture.hpp"

namespace foretoken::test {

/// Memory of exactly `bytes` bytes that begins `shift` bytes after a multiple of 64, filled with NaN in every
/// format.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes, std::size_t shift = 0)
      : memory_(new (std::align_val_t{64}) unsigned char[bytes + shift]), shift_(shift), bytes_(bytes) {
    std::memset(memory_.get(), 0xff, bytes + shift);
  }
  unsigned char* data() const { return memory_.get() + shift_; }
  std::size_t size() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<unsigned char[], Free> memory_;
  std::size_t shift_;
  std::size_t bytes_;
};

/// A matrix as a kernel reads or writes it: rows `stride` elements apart, NaN in between, nothing behind the
/// last one.
struct DeviceMatrix {
  ElementType type;
  std::int64_t stride;
  int rows;
  int columns;
  DeviceBytes bytes;

  DeviceMatrix(ElementType type_, int rows_, int columns_, std::int64_t stride_, std::size_t shift = 0)
      : type(type_),
        stride(stride_),
        rows(rows_),
        columns(columns_),
        bytes(static_cast<std::size_t>((rows_ - 1) * stride_ + columns_) * element_bytes(type_), shift) {}
  DeviceMatrix(ElementType type_, const reference::Matrix& m, std::int64_t stride_, std::size_t shift = 0)
      : DeviceMatrix(type_, m.rows, m.columns, stride_, shift) {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) set(r, c, static_cast<float>(m.at(r, c)));
  }
  void* data() const { return bytes.data(); }
  std::int64_t index(int r, int c) const { return r * stride + c; }
  void set(int r, int c, float x) {
    if (type == ElementType::f32)
      bytes.as<float>()[index(r, c)] = x;
    else
      bytes.as<Bf16>()[index(r, c)] = to_bf16(x);
  }
  float at(int r, int c) const {
    return type == ElementType::f32 ? bytes.as<float>()[index(r, c)]
                                    : to_float(bytes.as<Bf16>()[index(r, c)]);
  }
  /// The largest excess of |this - want| over absolute + relative |want|; at most 0 when all are near. NaN is
  /// far.
  double excess(const reference::Matrix& want, double absolute, double relative) const {
    double worst = -1;
    for (int r = 0; r < want.rows; ++r)
      for (int c = 0; c < want.columns; ++c) {
        const double w = want.at(r, c), over = std::abs(at(r, c) - w) - absolute - relative * std::abs(w);
        if (!(over <= worst)) worst = std::isnan(over) ? std::numeric_limits<double>::infinity() : over;
      }
    return worst;
  }
};

/// The number that a cache holds at dim `dim` of the token in `slot` of its block.
inline double cached_number(const cuda::KvLayout& layout, const unsigned char* pool, std::int64_t slot,
                            int layer, cuda::KvPart part, int kv_head, int dim) {
  const std::int64_t block = slot / layout.block_tokens, offset = slot % layout.block_tokens;
  const unsigned char* page = pool + cuda::page_offset_bytes(layout, block, layer, part, kv_head);
  const std::int64_t i = offset * layout.head_dim + dim;
  if (layout.type == cuda::KvType::f32) return reinterpret_cast<const float*>(page)[i];
  if (layout.type == cuda::KvType::bf16) return to_float(reinterpret_cast<const Bf16*>(page)[i]);
  float scale;
  std::memcpy(&scale, pool + cuda::scale_offset_bytes(layout, block, layer, part, kv_head) + offset * 4, 4);
  if (layout.type == cuda::KvType::int8) return double{scale} * reinterpret_cast<const std::int8_t*>(page)[i];
  return double{scale} * std::bit_cast<float>(cuda::fp8_to_bits(page[i]));
}

}  // namespace foretoken::test

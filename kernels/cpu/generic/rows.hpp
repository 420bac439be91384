#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/generic/math.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foretoken::cpu {
namespace {

template <class O>
inline float sum_of_squares(const float* x, int dim) {
  typename O::F sums[4] = {O::zero(), O::zero(), O::zero(), O::zero()};
  int i = 0;
  for (; i + 64 <= dim; i += 64)
    for (int j = 0; j < 4; ++j) {
      const auto part = O::load(x + i + j * 16);
      sums[j] = O::fma(part, part, sums[j]);
    }
  for (; i < dim; i += 16) {
    const int n = std::min(16, dim - i);
    const auto part = n == 16 ? O::load(x + i) : O::load(x + i, n);
    sums[0] = O::fma(part, part, sums[0]);
  }
  return O::sum(O::add(O::add(sums[0], sums[1]), O::add(sums[2], sums[3])));
}

template <class O, class T>
inline void scale_row(const float* x, const float* weight, float factor, int dim, T* out) {
  const auto by = O::broadcast(factor);
  int i = 0;
  for (; i + 16 <= dim; i += 16) O::store(out + i, O::mul(O::mul(O::load(x + i), by), O::load(weight + i)));
  if (i < dim) {
    const int n = dim - i;
    O::store(out + i, O::mul(O::mul(O::load(x + i, n), by), O::load(weight + i, n)), n);
  }
}

template <class O>
void rms_norm(const RmsNormArgs& args, Share share) {
  const Range mine = split(args.rows, share);
  for (std::int64_t row = mine.begin; row < mine.end; ++row) {
    const std::int64_t source = args.row_index != nullptr ? args.row_index[row] : row;
    const float* x = args.x + source * args.x_stride;
    const float mean = sum_of_squares<O>(x, args.dim) / static_cast<float>(args.dim);
    const float factor = 1.0F / std::sqrt(mean + args.epsilon);
    if (args.out_type == ElementType::f32)
      scale_row<O>(x, args.weight, factor, args.dim, static_cast<float*>(args.out) + row * args.out_stride);
    else
      scale_row<O>(x, args.weight, factor, args.dim, static_cast<Bf16*>(args.out) + row * args.out_stride);
  }
}

template <class O, class T>
inline void silu_mul_row(const float* gate, const float* up, int dim, T* out) {
  for (int i = 0; i < dim; i += 16) {
    const int n = std::min(16, dim - i);
    const auto g = n == 16 ? O::load(gate + i) : O::load(gate + i, n);
    const auto u = n == 16 ? O::load(up + i) : O::load(up + i, n);
    store_some<O>(out + i, O::mul(silu<O>(g), u), n);
  }
}

template <class O>
void silu_mul(const SiluMulArgs& args, Share share) {
  const Range mine = split(args.rows, share);
  for (std::int64_t row = mine.begin; row < mine.end; ++row) {
    const float* gate = args.gate + row * args.in_stride;
    const float* up = args.up + row * args.in_stride;
    if (args.out_type == ElementType::f32)
      silu_mul_row<O>(gate, up, args.dim, static_cast<float*>(args.out) + row * args.out_stride);
    else
      silu_mul_row<O>(gate, up, args.dim, static_cast<Bf16*>(args.out) + row * args.out_stride);
  }
}

/// The largest value is found in vectors, its first place by a second look: rows fit the first-level caches.
template <class O>
inline std::int32_t first_largest(const float* x, int dim) {
  auto largest = O::broadcast(-INFINITY);
  int i = 0;
  for (; i + 16 <= dim; i += 16) largest = O::max(O::load(x + i), largest);
  float value = O::largest(largest);
  for (; i < dim; ++i) value = std::max(value, x[i]);
  for (int at = 0; at < dim; ++at)
    if (x[at] == value) return at;
  return 0;
}

template <class O>
void argmax(const ArgmaxArgs& args, Share share) {
  const Range mine = split(args.rows, share);
  for (std::int64_t row = mine.begin; row < mine.end; ++row)
    args.tokens[row] = first_largest<O>(args.logits + row * args.stride, args.dim);
}

template <class O, class T>
inline void widen_row(const T* source, int dim, float* out) {
  int i = 0;
  for (; i + 16 <= dim; i += 16) O::store(out + i, O::load(source + i));
  if (i < dim) O::store(out + i, O::load(source + i, dim - i), dim - i);
}

template <class O>
void embed(const EmbedArgs& args, Share share) {
  const Range mine = split(args.rows, share);
  for (std::int64_t row = mine.begin; row < mine.end; ++row) {
    float* out = args.out + row * args.out_stride;
    const std::int64_t token = args.tokens[row];
    if (token < 0)
      std::fill(out, out + args.dim, 0.0F);
    else if (args.table_type == ElementType::f32)
      widen_row<O>(static_cast<const float*>(args.table) + token * args.dim, args.dim, out);
    else
      widen_row<O>(static_cast<const Bf16*>(args.table) + token * args.dim, args.dim, out);
  }
}

/// Conversions are dealt out in whole vectors, so that only the last member meets a remainder.
inline Range vector_split(std::int64_t count, Share share) {
  const Range vectors = split((count + 15) / 16, share);
  return {vectors.begin * 16, std::min(vectors.end * 16, count)};
}

template <class O>
void floats_to_bf16(const float* source, Bf16* target, std::int64_t count, Share share) {
  const Range mine = vector_split(count, share);
  for (std::int64_t i = mine.begin; i < mine.end; i += 16) {
    const int n = static_cast<int>(std::min<std::int64_t>(16, mine.end - i));
    store_some<O>(target + i, n == 16 ? O::load(source + i) : O::load(source + i, n), n);
  }
}

template <class O>
void bf16_to_floats(const Bf16* source, float* target, std::int64_t count, Share share) {
  const Range mine = vector_split(count, share);
  for (std::int64_t i = mine.begin; i < mine.end; i += 16) {
    const int n = static_cast<int>(std::min<std::int64_t>(16, mine.end - i));
    store_some<O>(target + i, n == 16 ? O::load(source + i) : O::load(source + i, n), n);
  }
}

}  // namespace
}  // namespace foretoken::cpu

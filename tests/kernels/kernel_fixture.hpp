#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/memory.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/reference/reference.hpp"
#include "sim/core/random.hpp"

namespace foretoken::test {

/// Random numbers for kernel tests: uniform in [-1, 1), rounded to bf16 where asked, so that the twin sees
/// the same input.
struct Numbers {
  std::uint64_t seed;
  std::uint64_t next = 0;
  /// A whole number in [low, high].
  int whole(int low, int high) {
    return low +
           static_cast<int>(RandomStream(seed, 0).bits(next++) % static_cast<std::uint64_t>(high - low + 1));
  }
  /// A number in [-1, 1) that `type` can store.
  float number(ElementType type) {
    const float x = static_cast<float>(RandomStream(seed, 0).bits(next++) >> 40) / 8388608.0F - 1.0F;
    return type == ElementType::bf16 ? to_float(to_bf16(x)) : x;
  }
  /// rows x columns numbers.
  reference::Matrix matrix(int rows, int columns, ElementType type) {
    reference::Matrix m(rows, columns);
    for (double& x : m.values) x = number(type);
    return m;
  }
};

/// Rows of a matrix stored with a stride as f32 or bf16, everything between the rows NaN.
struct Stored {
  ElementType type;
  std::int64_t stride;
  std::vector<float> floats;
  std::vector<Bf16> halves;

  Stored(ElementType type_, int rows, std::int64_t stride_) : type(type_), stride(stride_) {
    const auto count = static_cast<std::size_t>(rows * stride + 64);
    floats.assign(count, std::numeric_limits<float>::quiet_NaN());
    halves.assign(count, Bf16{0x7fc0});
  }
  Stored(ElementType type_, const reference::Matrix& m, std::int64_t stride_)
      : Stored(type_, m.rows, stride_) {
    for (int r = 0; r < m.rows; ++r)
      for (int c = 0; c < m.columns; ++c) set(r, c, static_cast<float>(m.at(r, c)));
  }
  void* data() { return type == ElementType::f32 ? static_cast<void*>(floats.data()) : halves.data(); }
  std::size_t index(int r, int c) const { return static_cast<std::size_t>(r * stride + c); }
  void set(int r, int c, float x) {
    floats[index(r, c)] = x;
    halves[index(r, c)] = to_bf16(x);
  }
  float at(int r, int c) const {
    return type == ElementType::f32 ? floats[index(r, c)] : to_float(halves[index(r, c)]);
  }
};

/// The largest excess of |got - want| over absolute + relative * |want|; at most 0 when all are near. NaN
/// counts as far.
inline double excess(const Stored& got, const reference::Matrix& want, double absolute, double relative) {
  double worst = -1;
  for (int r = 0; r < want.rows; ++r)
    for (int c = 0; c < want.columns; ++c) {
      const double over =
          std::abs(got.at(r, c) - want.at(r, c)) - absolute - relative * std::abs(want.at(r, c));
      if (!(over <= worst)) worst = std::isnan(over) ? std::numeric_limits<double>::infinity() : over;
    }
  return worst;
}

/// Runs a kernel call on a team of `threads`.
template <class Call>
void on_team(int threads, Call&& call) {
  cpu::ThreadPool pool(threads);
  pool.run([&](const cpu::Team& team) { call(team.share); });
}

}  // namespace foretoken::test

// GCC 12 takes the undefined operands inside its own intrinsics for ours (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "kernels/bench/peaks.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace foretoken::bench {
namespace {

/// Twelve independent sums hide the latency of a multiply-add on every processor known to us and leave
/// registers for the operands even where there are only sixteen.
constexpr int kSums = 12;

using Float4 = float __attribute__((vector_size(16)));

float portable_peak(long rounds) {
  const Float4 x = {0.999F, 0.999F, 0.999F, 0.999F}, y = {1e-3F, 1e-3F, 1e-3F, 1e-3F};
  Float4 sums[kSums] = {};
  for (long k = 0; k < rounds; ++k)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * x + y;
  Float4 total = {};
  for (int i = 0; i < kSums; ++i) total += sums[i];
  return total[0];
}

// Readers go through four quarters side by side: a tenth faster than one stream where memory is the limit,
// since a hardware prefetcher follows each.
constexpr int kStreams = 4;

float portable_read(const std::byte* data, std::size_t bytes) {
  Float4 sums[kStreams] = {};
  const std::size_t quarter = bytes / kStreams;
  for (std::size_t at = 0; at < quarter; at += 64)
#pragma GCC unroll 4
    for (int i = 0; i < kStreams; ++i)
#pragma GCC unroll 4
      for (std::size_t part = 0; part < 64; part += 16)
        sums[i] += *reinterpret_cast<const Float4*>(data + std::size_t(i) * quarter + at + part);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3]))[0];
}

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] float avx2_peak(long rounds) {
  const __m256 x = _mm256_set1_ps(0.999F), y = _mm256_set1_ps(1e-3F);
  __m256 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (long k = 0; k < rounds; ++k)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm256_fmadd_ps(sums[i], x, y);
  __m256 total = sums[0];
  for (int i = 1; i < kSums; ++i) total = _mm256_add_ps(total, sums[i]);
  return _mm256_cvtss_f32(total);
}

[[gnu::target("avx2")]] float avx2_read(const std::byte* data, std::size_t bytes) {
  __m256 sums[kStreams];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  const std::size_t quarter = bytes / kStreams;
  for (std::size_t at = 0; at < quarter; at += 64)
#pragma GCC unroll 4
    for (int i = 0; i < kStreams; ++i) {
      const auto* line = reinterpret_cast<const float*>(data + std::size_t(i) * quarter + at);
      sums[i] = _mm256_add_ps(sums[i], _mm256_add_ps(_mm256_load_ps(line), _mm256_load_ps(line + 8)));
    }
  return _mm256_cvtss_f32(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
}

[[gnu::target("avx512f")]] float avx512_peak(long rounds) {
  const __m512 x = _mm512_set1_ps(0.999F), y = _mm512_set1_ps(1e-3F);
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (long k = 0; k < rounds; ++k)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_fmadd_ps(sums[i], x, y);
  __m512 total = sums[0];
  for (int i = 1; i < kSums; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx512f,avx512bf16")]] float avx512_bf16_peak(long rounds) {
  // Ordinary small numbers: 2^-10 times 1, twice a step.
  const __m512bh x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3a803a80));
  const __m512bh y = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  __m512 sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (long k = 0; k < rounds; ++k)
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], x, y);
  __m512 total = sums[0];
  for (int i = 1; i < kSums; ++i) total = _mm512_add_ps(total, sums[i]);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx512f")]] float avx512_read(const std::byte* data, std::size_t bytes) {
  __m512 sums[kStreams];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const std::size_t quarter = bytes / kStreams;
  for (std::size_t at = 0; at < quarter; at += 64)
#pragma GCC unroll 4
    for (int i = 0; i < kStreams; ++i) {
      const auto* line = reinterpret_cast<const float*>(data + std::size_t(i) * quarter + at);
      sums[i] = _mm512_add_ps(sums[i], _mm512_load_ps(line));
    }
  return _mm512_cvtss_f32(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

#endif

}  // namespace

PeakLoop peak_loop(cpu::Isa isa, [[maybe_unused]] ElementType stored) {
  switch (isa) {
#if defined(__x86_64__)
    case cpu::Isa::avx512_bf16:
      if (stored == ElementType::bf16) return {avx512_bf16_peak, kSums * 16 * 4};
      return {avx512_peak, kSums * 16 * 2};
    case cpu::Isa::avx512: return {avx512_peak, kSums * 16 * 2};
    case cpu::Isa::avx2: return {avx2_peak, kSums * 8 * 2};
#endif
    default: return {portable_peak, kSums * 4 * 2};
  }
}

float read_all(const std::byte* data, std::size_t bytes) {
#if defined(__x86_64__)
  if (cpu::is_available(cpu::Isa::avx512)) return avx512_read(data, bytes);
  if (cpu::is_available(cpu::Isa::avx2)) return avx2_read(data, bytes);
#endif
  return portable_read(data, bytes);
}

}  // namespace foretoken::bench

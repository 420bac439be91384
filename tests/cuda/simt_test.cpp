#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/simt/races.hpp"
#include "kernels/cuda/types.hpp"
#include "tests/catch.hpp"
#include "tests/cuda/simt_fixture.hpp"

using namespace foretoken;
using namespace foretoken::cuda;
using foretoken::test::fault_of;
using foretoken::test::in_all_orders;

namespace {

/// Which defect a faulty kernel has.
enum class Defect {
  none,
  no_barrier,
  two_barriers,
  skipped_barrier,
  early_end,
  divergent_shuffles,
  other_mask,
  outside_mask,
  early_end_in_warp,
  half_warp,
  no_wait,
  late_wait,
  never_waits,
  misaligned_copy,
  copy_elsewhere,
  past_dynamic,
  throws
};

/// Sums 128 numbers over a block in shared memory, unless the defect spoils it.
__global__ void block_sum(const float* in, float* out, Defect defect) {
  FT_DYN_SMEM(raw);
  auto* sums = reinterpret_cast<float*>(raw);
  const std::uint32_t t = threadIdx.x;
  if (defect == Defect::early_end && t == 70) return;
  sums[t] = in[blockIdx.x * 128 + t];
  for (std::uint32_t half = 64; half > 0; half /= 2) {
    if (defect == Defect::two_barriers && t < 32)
      __syncthreads();
    else if (defect != Defect::no_barrier && !(defect == Defect::skipped_barrier && t == 5))
      __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (defect == Defect::past_dynamic && t == 3) raw[128 * 4] = 1;
  if (defect == Defect::throws && t == 3 && blockIdx.x == 1) throw std::runtime_error("thrown by a thread");
  if (t == 0) out[blockIdx.x] = sums[0];
}

/// The same over one warp by shuffles.
__global__ void warp_sum(const float* in, float* out, Defect defect) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float sum = in[threadIdx.x];
  if (defect == Defect::early_end_in_warp && lane == 9) return;
  for (int bits = 16; bits > 0; bits /= 2) {
    if (defect == Defect::divergent_shuffles && lane < 16)
      sum += __shfl_down_sync(0xffffffffU, sum, 1);
    else if (defect == Defect::half_warp && lane < 16)
      sum += __shfl_xor_sync(0xffffU, sum, bits);
    else if (defect == Defect::other_mask)
      sum += __shfl_xor_sync(lane < 16 ? 0xffffffffU : 0xffff0000U, sum, bits);
    else if (defect == Defect::outside_mask)
      sum += __shfl_sync(lane < 16 ? 0xffffU : 0xffff0000U, sum, 31 - lane);
    else
      sum += __shfl_xor_sync(0xffffffffU, sum, bits);
  }
  out[threadIdx.x] = sum;
}

/// Copies four rows of 16 floats through a ring of two stages and adds one.
__global__ void ring_copy(const float* in, float* out, Defect defect) {
  FT_SHARED(float, ring, 2 * 16 + 4);
  const int t = static_cast<int>(threadIdx.x);
  const auto issue = [&](int row) {
    if (t < 4 && row < 4) ft::cp_async16(ring + row % 2 * 16 + t * 4, in + row * 16 + t * 4, row != 3);
    if (t < 4 && row == 0 && defect == Defect::misaligned_copy) ft::cp_async16(ring + 1, in, true);
    if (t < 4 && row == 0 && defect == Defect::copy_elsewhere) ft::cp_async16(out, in, true);
    ft::cp_async_commit();
  };
  issue(0);
  for (int row = 0; row < 4; ++row) {
    issue(row + 1);
    if (defect == Defect::late_wait)
      ft::cp_async_wait<2>();
    else if (defect != Defect::no_wait && defect != Defect::never_waits)
      ft::cp_async_wait<1>();
    __syncthreads();
    if (t < 16) out[row * 16 + t] = ring[row % 2 * 16 + t] + 1;
    __syncthreads();
  }
  if (defect != Defect::never_waits) ft::cp_async_wait<0>();
}

/// Each thread writes in[i] + 1: nobody waits.
__global__ void add_one(const int* in, int* out, int count) {
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = in[i] + 1;
}

/// Reads its neighbour's number in shared memory; without the barrier some order reads what nobody wrote.
__global__ void neighbour(float* out, bool has_barrier) {
  FT_SHARED(float, numbers, 64);
  const auto t = threadIdx.x;
  numbers[t] = static_cast<float>(t);
  if (has_barrier) __syncthreads();
  out[t] = numbers[(t + 1) % 64];
}

/// Lanes write rows of a tile that others load as a matrix.
__global__ void tile(std::uint32_t* out, bool has_syncwarp) {
  FT_SHARED(uint4, rows, 32);
  const std::uint32_t t = threadIdx.x;
  rows[(t + 5) % 32] = make_uint4(t, t, t, t);
  if (has_syncwarp) __syncwarp();
  std::uint32_t r[4];
  ft::ldmatrix4<false>(r, rows + t);
  for (std::uint32_t i = 0; i < 4; ++i) out[t * 4 + i] = r[i];
}

enum class Overlap { none, same_value, read_then_write, early_reuse, atomics, neighbours };

/// Two warps that touch the same bytes, in ways that no order of threads may show.
__global__ void overlapping(float* out, Overlap overlap) {
  FT_SHARED(int, flag, 4);
  FT_SHARED(std::uint8_t, bytes, 64);
  const auto t = threadIdx.x;
  if (t < 4) flag[t] = 0;
  bytes[t] = static_cast<std::uint8_t>(t);
  __syncthreads();
  if (overlap == Overlap::same_value) flag[0] = 1;
  if (overlap == Overlap::read_then_write && t == 0) out[0] = static_cast<float>(flag[1]);
  if (overlap == Overlap::read_then_write && t == 40) flag[1] = 0;
  if (overlap == Overlap::early_reuse && t == 0) ft::cp_async16(flag, out, false);
  if (overlap == Overlap::early_reuse && t == 40) out[0] = static_cast<float>(flag[2]);
  if (overlap == Overlap::atomics) atomicAdd(&flag[3], 1);
  if (overlap == Overlap::neighbours) bytes[t ^ 1U] = 0;
  ft::cp_async_commit();
  ft::cp_async_wait<0>();
  __syncthreads();
  if (t == 0) out[t] = static_cast<float>(flag[0] + bytes[3]);
}

/// out = a b for a 16 x 16 and a 16 x 8 matrix of bf16, both row by row: b is transposed on its way to
/// registers.
__global__ void multiply(const Bf16* a, const Bf16* b, float* out) {
  FT_SHARED(uint4, rows, 32 + 16);
  const std::uint32_t t = threadIdx.x;
  std::memcpy(rows + t, a + t * 8, 16);
  if (t < 16) std::memcpy(rows + 32 + t, b + t * 8, 16);
  __syncwarp();
  std::uint32_t left[4], right[2];
  // Matrices in the order of the fragment: the upper and lower rows of the left half, then of the right half.
  ft::ldmatrix4<false>(left, rows + (t % 16) * 2 + t / 16);
  ft::ldmatrix2<true>(right, rows + 32 + t % 16);
  float d[4] = {1, 1, 1, 1};
  ft::mma_bf16(d, left, right);
  for (std::uint32_t i = 0; i < 4; ++i) out[(t / 4 + i / 2 * 8) * 8 + t % 4 * 2 + i % 2] = d[i];
}

std::string block_sum_fault(Defect defect, Stream stream = nullptr) {
  std::vector<float> in(256, 1.0F), out(2);
  return fault_of(
      [&] { FT_LAUNCH(block_sum, 2, 128, 128 * sizeof(float), stream, in.data(), out.data(), defect); });
}

std::string warp_sum_fault(Defect defect) {
  std::vector<float> in(64, 1.0F), out(64);
  return fault_of([&] { FT_LAUNCH(warp_sum, 1, 64, 0, nullptr, in.data(), out.data(), defect); });
}

std::string ring_fault(Defect defect, std::vector<float>& out) {
  std::vector<float> in(64);
  std::iota(in.begin(), in.end(), 0.0F);
  auto aligned = std::make_unique<float4[]>(16);
  std::memcpy(aligned.get(), in.data(), 256);
  out.assign(64, 0.0F);
  return fault_of([&] {
    FT_LAUNCH(ring_copy, 1, 32, 0, nullptr, reinterpret_cast<const float*>(aligned.get()), out.data(),
              defect);
  });
}

#if defined(__SANITIZE_ADDRESS__)
/// Whether `call` ends the process it runs in.
template <class Call>
bool dies(Call&& call) {
  const pid_t child = fork();
  if (child == 0) {
    std::fclose(stderr);
    call();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
#endif

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("sound kernels run in every order, over OS threads too") {
  in_all_orders([] {
    for (const int threads : {1, 3}) {
      simt::options().threads = threads;
      std::vector<float> in(128 * 7), out(7);
      std::iota(in.begin(), in.end(), 0.0F);
      FT_LAUNCH(block_sum, 7, 128, 128 * sizeof(float), nullptr, in.data(), out.data(), Defect::none);
      for (std::size_t b = 0; b < 7; ++b)
        CHECK(out[b] == std::accumulate(in.begin() + static_cast<std::ptrdiff_t>(b) * 128,
                                        in.begin() + static_cast<std::ptrdiff_t>(b + 1) * 128, 0.0F));
      std::vector<float> sums(64);
      FT_LAUNCH(warp_sum, 1, 64, 0, nullptr, in.data(), sums.data(), Defect::none);
      CHECK(sums[0] == 496.0F);
      CHECK(sums[63] == 496.0F + 32 * 32);
    }
    simt::options().threads = 1;
    std::vector<float> rows;
    CHECK(ring_fault(Defect::none, rows).empty());
    for (std::size_t i = 0; i < 64; ++i) CHECK(rows[i] == (i < 48 ? static_cast<float>(i) : 0.0F) + 1.0F);
  });
}

TEST_CASE("faults of barriers are found and named") {
  in_all_orders([] {
    CHECK(contains(block_sum_fault(Defect::two_barriers), "different barriers"));
    CHECK_FALSE(block_sum_fault(Defect::skipped_barrier).empty());
    const std::string early = block_sum_fault(Defect::early_end);
    CHECK((contains(early, "have ended before __syncthreads") || contains(early, "ended while")));
    CHECK(contains(early, "block_sum, block ("));
    CHECK(contains(early, "simt_test.cpp:"));
  });
}

TEST_CASE("a missing barrier changes the result in some order") {
  if (simt::looks_for_races()) return;  // which end the launch
  int wrong = 0;
  in_all_orders([&] {
    std::vector<float> out(64);
    FT_LAUNCH(neighbour, 1, 64, 0, nullptr, out.data(), true);
    for (std::size_t t = 0; t < 64; ++t) CHECK(out[t] == static_cast<float>((t + 1) % 64));
    FT_LAUNCH(neighbour, 1, 64, 0, nullptr, out.data(), false);
    for (std::size_t t = 0; t < 64; ++t) wrong += out[t] == static_cast<float>((t + 1) % 64) ? 0 : 1;
  });
  CHECK(wrong > 0);
}

TEST_CASE("faults of warp operations are found and named") {
  in_all_orders([] {
    CHECK(contains(warp_sum_fault(Defect::divergent_shuffles), "divergent warp operations"));
    CHECK_FALSE(warp_sum_fault(Defect::half_warp).empty());
    CHECK_FALSE(warp_sum_fault(Defect::other_mask).empty());
    CHECK(contains(warp_sum_fault(Defect::outside_mask), "not in the mask"));
    CHECK_FALSE(warp_sum_fault(Defect::early_end_in_warp).empty());
  });
}

TEST_CASE("copies without their wait have not landed") {
  in_all_orders([] {
    std::vector<float> out;
    CHECK(ring_fault(Defect::no_wait, out).empty());
    CHECK(std::isnan(out[0]));
    CHECK(ring_fault(Defect::late_wait, out).empty());
    CHECK(std::isnan(out[0]));
    CHECK(contains(ring_fault(Defect::never_waits, out), "without waiting"));
    CHECK(contains(ring_fault(Defect::misaligned_copy, out), "multiple of 16"));
    CHECK(contains(ring_fault(Defect::copy_elsewhere, out), "outside"));
  });
}

TEST_CASE("exceptions of a thread end the launch, and the next one is sound") {
  for (const int threads : {1, 2}) {
    simt::options().threads = threads;
    CHECK_THROWS_WITH(block_sum_fault(Defect::throws), "thrown by a thread");
    CHECK(block_sum_fault(Defect::none).empty());
  }
  simt::options().threads = 1;
}

TEST_CASE("launches that no device accepts are refused") {
  std::vector<int> in(8), out(8);
  CHECK_THROWS_AS((FT_LAUNCH(add_one, 0, 32, 0, nullptr, in.data(), out.data(), 8)), LaunchError);
  CHECK_THROWS_AS((FT_LAUNCH(add_one, 1, 1025, 0, nullptr, in.data(), out.data(), 8)), LaunchError);
  CHECK_THROWS_AS((FT_LAUNCH(add_one, 1, 32, 300000, nullptr, in.data(), out.data(), 8)), LaunchError);
}

TEST_CASE("kernels that wait for nobody run without switches") {
  std::vector<int> in(1000, 4), out(1000);
  FT_LAUNCH(add_one, 4, 256, 0, nullptr, in.data(), out.data(), 1000);
  const auto before = simt::counters();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) FT_LAUNCH(add_one, 1, 256, 0, nullptr, in.data(), out.data(), 256);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const auto after = simt::counters();
  CHECK(after.switches - before.switches == 2000);
  CHECK(out[0] == 5);
  WARN("launch of one block of 256 threads: " << took.count() / 1000 << " us");
}

TEST_CASE("what a switch costs", "[.cost]") {
  std::vector<float> in(128, 1.0F), out(1);
  FT_LAUNCH(block_sum, 1, 128, 512, nullptr, in.data(), out.data(), Defect::none);
  const auto before = simt::counters();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 500; ++i)
    FT_LAUNCH(block_sum, 1, 128, 512, nullptr, in.data(), out.data(), Defect::none);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  const auto switches = static_cast<double>(simt::counters().switches - before.switches);
  WARN("a switch with what a thread does between: " << took.count() / switches << " ns");
}

TEST_CASE("the matrix instructions multiply") {
  in_all_orders([] {
    std::vector<Bf16> a(256), b(128);
    std::vector<float> out(128);
    for (std::size_t i = 0; i < 256; ++i) a[i] = to_bf16(static_cast<float>((i * 37) % 29) - 14.0F);
    for (std::size_t i = 0; i < 128; ++i) b[i] = to_bf16(static_cast<float>((i * 23) % 31) - 15.0F);
    FT_LAUNCH(multiply, 1, 32, 0, nullptr, a.data(), b.data(), out.data());
    for (std::size_t r = 0; r < 16; ++r)
      for (std::size_t c = 0; c < 8; ++c) {
        float sum = 1;
        for (std::size_t k = 0; k < 16; ++k) sum += to_float(a[r * 16 + k]) * to_float(b[k * 8 + c]);
        CHECK(out[r * 8 + c] == sum);
      }
  });
}

TEST_CASE("ldmatrix gives each lane its words") {
  in_all_orders([] {
    std::vector<std::uint32_t> out(128);
    FT_LAUNCH(tile, 1, 32, 0, nullptr, out.data(), true);
    // Lane l gets word l % 4 of row l / 4 of each matrix; row r was written by lane (r + 27) % 32.
    for (std::uint32_t l = 0; l < 32; ++l)
      for (std::uint32_t m = 0; m < 4; ++m) CHECK(out[l * 4 + m] == (m * 8 + l / 4 + 27) % 32);
  });
}

TEST_CASE("races are found in every order, wherever they do not show") {
  if (!simt::looks_for_races()) return;
  in_all_orders([] {
    std::vector<float> out(64);
    std::vector<std::uint32_t> words(128);
    const auto barrier = fault_of([&] { FT_LAUNCH(neighbour, 1, 64, 0, nullptr, out.data(), false); });
    CHECK(contains(barrier, "race in shared memory"));
    const auto lanes = fault_of([&] { FT_LAUNCH(tile, 1, 32, 0, nullptr, words.data(), false); });
    CHECK(contains(lanes, "race in shared memory"));
    for (const Overlap overlap : {Overlap::same_value, Overlap::read_then_write, Overlap::early_reuse})
      CHECK(contains(fault_of([&] { FT_LAUNCH(overlapping, 1, 64, 0, nullptr, out.data(), overlap); }),
                     "race"));
    for (const Overlap overlap : {Overlap::none, Overlap::atomics, Overlap::neighbours})
      CHECK(fault_of([&] { FT_LAUNCH(overlapping, 1, 64, 0, nullptr, out.data(), overlap); }).empty());
  });
}

TEST_CASE("a missing __syncwarp before ldmatrix changes the result in some order") {
  if (simt::looks_for_races()) return;
  int wrong = 0;
  in_all_orders([&] {
    std::vector<std::uint32_t> out(128);
    FT_LAUNCH(tile, 1, 32, 0, nullptr, out.data(), false);
    for (std::uint32_t l = 0; l < 32; ++l) wrong += out[l * 4] == (l / 4 + 27) % 32 ? 0 : 1;
  });
  CHECK(wrong > 0);
}

TEST_CASE("a write one byte behind shared memory, or beside global memory, is found") {
#if defined(__SANITIZE_ADDRESS__)
  CHECK(dies([] { block_sum_fault(Defect::past_dynamic); }));
  const auto overrun = [] {
    const std::vector<int> in(10);
    std::vector<int> out(9);
    FT_LAUNCH(add_one, 1, 32, 0, nullptr, in.data(), out.data(), 10);
  };
  CHECK(dies(overrun));
#else
  CHECK(contains(block_sum_fault(Defect::past_dynamic), "outside a piece of shared memory"));
#endif
}

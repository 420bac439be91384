#include "kernels/cuda/sample.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

using namespace sampling;

constexpr int kThreadsMax = 1024;
// A pass over the row tells which of eight parts of an interval of keys holds the threshold.
constexpr int kPassBits = 3;
constexpr int kParts = 1 << kPassBits;

/// A number and where it stood; of equal ones the first wins.
struct Candidate {
  float value;
  std::int32_t index;
};

__device__ __forceinline__ Candidate better(Candidate a, Candidate b) {
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

/// The best candidate of the block, in every thread.
__device__ Candidate best_of_block(Candidate mine, Candidate* partial) {
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) {
    const Candidate other{__shfl_xor_sync(0xffffffffU, mine.value, bits),
                          __shfl_xor_sync(0xffffffffU, mine.index, bits)};
    mine = better(mine, other);
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
  __syncthreads();
  Candidate best = partial[0];
  for (unsigned w = 1; w < blockDim.x / 32; ++w) best = better(best, partial[w]);
  return best;
}

/// A row's logits, and what all threads of the block know of it.
struct Row {
  const float* logits;
  int vocabulary;
  bool is_aligned;
  float largest;
  float inverse;
};

/// Calls `visit(logit, index)` for this thread's part of the row.
template <class Visit>
__device__ __forceinline__ void for_each_logit(const Row& row, Visit&& visit) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int fours = row.is_aligned ? row.vocabulary / 4 : 0;
  for (int i = thread; i < fours; i += threads) {
    const float4 x = reinterpret_cast<const float4*>(row.logits)[i];
    visit(x.x, 4 * i);
    visit(x.y, 4 * i + 1);
    visit(x.z, 4 * i + 2);
    visit(x.w, 4 * i + 3);
  }
  for (int i = fours * 4 + thread; i < row.vocabulary; i += threads) visit(row.logits[i], i);
}

/// What stands in shared memory during a search.
struct Sums {
  unsigned long long below[kParts];
};

/// The smallest key up to which weights reach `target`, or a key above `limit` when those up to `limit` never
/// do.
template <bool HasMass>
__device__ std::uint32_t search(const Row& row, std::uint32_t limit, std::uint64_t target, Sums* sums) {
  std::uint32_t low = 0;
  for (int width = 31; width > 0;) {
    const int bits = width < kPassBits ? width : kPassBits, shift = width - bits;
    unsigned long long mine[kParts - 1] = {};
    for_each_logit(row, [&](float logit, int) {
      const float z = scaled(logit, row.largest, row.inverse);
      const std::uint32_t key = key_of(z);
      if (key > limit) return;
      const unsigned long long weight = HasMass ? mass_of(z) : 1;
#pragma unroll
      for (int j = 0; j < kParts - 1; ++j)
        mine[j] += key < low + (static_cast<std::uint32_t>(j + 1) << shift) ? weight : 0;
    });
    __syncthreads();
    if (threadIdx.x < kParts) sums->below[threadIdx.x] = 0;
    __syncthreads();
    // Sums of whole numbers do not depend on the order in which warps come.
#pragma unroll
    for (int j = 0; j < kParts - 1; ++j) {
      unsigned long long sum = mine[j];
#pragma unroll
      for (int b = 16; b > 0; b /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, b);
      if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&sums->below[j], sum);
    }
    __syncthreads();
    int part = 0;
    while (part < (1 << bits) - 1 && sums->below[part] < target) ++part;
    low += static_cast<std::uint32_t>(part) << shift;
    width = shift;
  }
  return low;
}

/// The mass of all keys up to `limit`.
__device__ std::uint64_t mass_up_to(const Row& row, std::uint32_t limit, Sums* sums) {
  unsigned long long mine = 0;
  for_each_logit(row, [&](float logit, int) {
    const float z = scaled(logit, row.largest, row.inverse);
    if (key_of(z) <= limit) mine += mass_of(z);
  });
#pragma unroll
  for (int b = 16; b > 0; b /= 2) mine += __shfl_xor_sync(0xffffffffU, mine, b);
  __syncthreads();
  if (threadIdx.x == 0) sums->below[0] = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) atomicAdd(&sums->below[0], mine);
  __syncthreads();
  return sums->below[0];
}

__global__ void __launch_bounds__(kThreadsMax) sample_kernel(const SampleArgs args, bool is_aligned) {
  FT_SHARED(Candidate, partial, 32);
  FT_SHARED(Sums, sums, 1);
  ft::grid_dependency_wait();
  ft::grid_dependency_launch();
  Row row{args.logits + static_cast<std::int64_t>(blockIdx.x) * args.stride, args.vocabulary, is_aligned,
          0.0F, 0.0F};
  const float lowest = -__uint_as_float(kKeyMax);
  constexpr int kNowhere = 0x7fffffff;
  Candidate most{lowest, kNowhere};
  for_each_logit(row, [&](float logit, int i) { most = better(most, {logit, i}); });
  most = best_of_block(most, partial);
  const SampleParams params = args.params != nullptr ? args.params[blockIdx.x] : SampleParams{};
  if (is_greedy(params, most.value)) {
    if (threadIdx.x == 0) args.tokens[blockIdx.x] = most.index == kNowhere ? 0 : most.index;
    return;
  }
  row.largest = most.value;
  row.inverse = divide(1.0F, params.temperature);
  std::uint32_t limit = min_p_limit(params.min_p);
  if (params.top_k > 0 && params.top_k < args.vocabulary) {
    const std::uint32_t found = search<false>(row, limit, static_cast<std::uint64_t>(params.top_k), sums);
    limit = found < limit ? found : limit;
  }
  if (params.top_p < 1.0F) {
    const std::uint64_t target = top_p_target(params.top_p, mass_up_to(row, limit, sums));
    const std::uint32_t found = search<true>(row, limit, target, sums);
    limit = found < limit ? found : limit;
  }
  const std::uint64_t key = draw_key(params);
  // The most probable token is always in, and a score to beat from the start.
  const auto favourite = static_cast<std::uint32_t>(most.index);
  Candidate drawn{score(0.0F, uniform(key, favourite)), most.index};
  for_each_logit(row, [&](float logit, int i) {
    const float z = scaled(logit, row.largest, row.inverse);
    if (key_of(z) > limit) return;
    const std::uint32_t random = uniform(key, static_cast<std::uint32_t>(i));
    if (may_reach(z, random, drawn.value)) drawn = better(drawn, {score(z, random), i});
  });
  drawn = best_of_block(drawn, partial);
  if (threadIdx.x == 0) args.tokens[blockIdx.x] = drawn.index;
}

}  // namespace

void sample(const SampleArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require(
      args.rows > 0 && args.vocabulary > 0 && args.vocabulary <= 1 << 24 && args.stride >= args.vocabulary,
      "sample", "bad shape");
  const int threads = row_threads(args.vocabulary, kThreadsMax);
  FT_LAUNCH_DEPENDENT(sample_kernel, args.rows, threads, 0, stream, args,
                      has_aligned_rows(args.logits, args.stride, 4));
}

}  // namespace foretoken::cuda

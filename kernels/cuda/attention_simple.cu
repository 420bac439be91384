#include "kernels/cuda/attention_simple.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
// Dims of a head that one lane holds: 8 make 256 for the warp.
constexpr int kDimsMax = 8;
constexpr float kLog2E = 1.44269504088896340736F;

/// One cached number, widened, without its token's scale.
__device__ __forceinline__ float cached(const void* page, std::int64_t i, KvType type) {
  switch (type) {
    case KvType::f32: return static_cast<const float*>(page)[i];
    case KvType::bf16: return ft::to_float(static_cast<const Bf16*>(page)[i]);
    case KvType::int8: return static_cast<float>(static_cast<const std::int8_t*>(page)[i]);
    default: return ft::fp8_to_float(static_cast<const std::uint8_t*>(page)[i]);
  }
}

/// A page of keys or values of one block, and its scales.
struct Page {
  const void* data;
  const float* scales;
};

__device__ __forceinline__ Page page_of(const AttentionArgs& args, std::int64_t block, KvPart part,
                                        int kv_head) {
  const auto* pool = static_cast<const unsigned char*>(args.pool);
  Page page{pool + page_offset_bytes(args.layout, block, args.layer, part, kv_head), nullptr};
  if (has_scales(args.layout.type))
    page.scales = reinterpret_cast<const float*>(
        pool + scale_offset_bytes(args.layout, block, args.layer, part, kv_head));
  return page;
}

/// The sequence that holds `row`: the last whose first row is not behind it.
__device__ __forceinline__ int sequence_of(const AttentionBatch& batch, int row) {
  int low = 0, high = batch.sequences - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (batch.row_begin[middle] <= row)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// One warp per row and query head. Keys go by in runs of 32: a lane scores one of them, then holds a dim of
// every 32 and adds up their values. The runs begin at key 0, so that a row's sums know no batch.
template <class T>
__global__ void __launch_bounds__(kThreads) attention_simple_kernel(const AttentionArgs args) {
  FT_SHARED(float, shared_query, kWarps * 32 * kDimsMax);
  FT_SHARED(float, shared_weights, kWarps * 32);
  ft::grid_dependency_wait();
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y) * kWarps + warp;
  if (head >= args.query_heads || row >= args.batch.row_begin[args.batch.sequences]) return;
  const int sequence = sequence_of(args.batch, row);
  const int keys = args.batch.context[sequence] - args.batch.row_begin[sequence + 1] + row + 1;
  const int kv_head = head / (args.query_heads / args.layout.kv_heads);
  const int dim = args.layout.head_dim, block_tokens = args.layout.block_tokens;
  const auto* q = static_cast<const T*>(args.q) + row * args.q_stride + std::int64_t{head} * dim;
  auto* out = static_cast<T*>(args.out) + row * args.out_stride + std::int64_t{head} * dim;
  const std::int32_t* pages = args.batch.pages + args.batch.page_begin[sequence];
  float* query = shared_query + warp * 32 * kDimsMax;
  float* weights = shared_weights + warp * 32;
  for (int i = lane; i < dim; i += 32) query[i] = ft::to_float(q[i]) * args.scale * kLog2E;
  float sum[kDimsMax] = {}, largest = -INFINITY, total = 0.0F;
  __syncwarp();
  for (int begin = 0; begin < keys; begin += 32) {
    const int token = begin + lane;
    float score = -INFINITY;
    if (token < keys) {
      const Page key = page_of(args, pages[token / block_tokens], KvPart::key, kv_head);
      const int slot = token % block_tokens;
      score = 0.0F;
      for (int i = 0; i < dim; ++i)
        score += query[i] * cached(key.data, std::int64_t{slot} * dim + i, args.layout.type);
      if (key.scales != nullptr) score *= key.scales[slot];
    }
    const float next = fmaxf(largest, warp_max(score));
    const float keep = ft::exp2_fast(largest - next);
    const float weight = ft::exp2_fast(score - next);
    largest = next;
    total = total * keep + warp_sum(weight);
    weights[lane] = weight;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kDimsMax; ++j) sum[j] *= keep;
    const int end = keys - begin < 32 ? keys - begin : 32;
    for (int k = 0; k < end; ++k) {
      const int slot = (begin + k) % block_tokens;
      const Page value = page_of(args, pages[(begin + k) / block_tokens], KvPart::value, kv_head);
      const float scale = weights[k] * (value.scales != nullptr ? value.scales[slot] : 1.0F);
#pragma unroll
      for (int j = 0; j < kDimsMax; ++j)
        if (lane + 32 * j < dim)
          sum[j] += scale * cached(value.data, std::int64_t{slot} * dim + lane + 32 * j, args.layout.type);
    }
    __syncwarp();
  }
#pragma unroll
  for (int j = 0; j < kDimsMax; ++j)
    if (lane + 32 * j < dim) store_one(out + lane + 32 * j, keys > 0 ? sum[j] / total : 0.0F);
}

}  // namespace

void attention_simple(const AttentionArgs& args, Stream stream) {
  require(args.layout.head_dim >= 1 && args.layout.head_dim <= 32 * kDimsMax, "attention_simple",
          "expected head_dim up to 256");
  require(args.layout.kv_heads >= 1 && args.query_heads % args.layout.kv_heads == 0, "attention_simple",
          "expected whole groups of query heads");
  if (args.rows == 0 || args.batch.sequences == 0) return;
  const dim3 grid(static_cast<unsigned>(args.rows),
                  static_cast<unsigned>((args.query_heads + kWarps - 1) / kWarps));
  if (args.activation == ElementType::f32)
    FT_LAUNCH_DEPENDENT(attention_simple_kernel<float>, grid, kThreads, 0, stream, args);
  else
    FT_LAUNCH_DEPENDENT(attention_simple_kernel<Bf16>, grid, kThreads, 0, stream, args);
}

}  // namespace foretoken::cuda

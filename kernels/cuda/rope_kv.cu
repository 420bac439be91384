#include "kernels/cuda/rope_kv.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;
// A warp holds a head in registers: each lane two neighbours of the lower half and the two they turn with, for up to 128
// dims of a half.
constexpr int kSteps = 2;

__device__ __forceinline__ float2 load_pair(const float* from) { return *reinterpret_cast<const float2*>(from); }
__device__ __forceinline__ float2 load_pair(const Bf16* from) {
  const std::uint32_t pair = *reinterpret_cast<const std::uint32_t*>(from);
  return make_float2(ft::low_float(pair), ft::high_float(pair));
}

/// How two neighbours are stored, with the factor that 8-bit types divide by.
template <KvType Type>
__device__ __forceinline__ void store_pair(void* page, std::int64_t element, float x, float y, float inverse) {
  if constexpr (Type == KvType::f32) {
    *reinterpret_cast<float2*>(static_cast<float*>(page) + element) = make_float2(x, y);
  } else if constexpr (Type == KvType::bf16) {
    *reinterpret_cast<std::uint32_t*>(static_cast<Bf16*>(page) + element) = ft::pack_bf16x2(x, y);
  } else {
    std::uint32_t low, high;
    if constexpr (Type == KvType::int8) {
      low = static_cast<std::uint8_t>(ft::to_int8(x * inverse));
      high = static_cast<std::uint8_t>(ft::to_int8(y * inverse));
    } else {
      low = ft::to_fp8(x * inverse);
      high = ft::to_fp8(y * inverse);
    }
    *reinterpret_cast<std::uint16_t*>(static_cast<std::uint8_t*>(page) + element) =
        static_cast<std::uint16_t>(low | high << 8);
  }
}

/// A head's lower and upper dims as this lane holds them.
struct Head {
  float2 low[kSteps];
  float2 high[kSteps];
};

template <class T>
__device__ __forceinline__ void load_head(Head& head, const T* from, const float* bias, int half, int lane) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int i = (s * 32 + lane) * 2;
    head.low[s] = head.high[s] = make_float2(0.0F, 0.0F);
    if (i >= half) continue;
    head.low[s] = load_pair(from + i);
    head.high[s] = load_pair(from + half + i);
    if (bias == nullptr) continue;
    head.low[s].x += bias[i];
    head.low[s].y += bias[i + 1];
    head.high[s].x += bias[half + i];
    head.high[s].y += bias[half + i + 1];
  }
}

__device__ __forceinline__ void rotate(Head& head, const float* cosine, const float* sine, int half, int lane) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int i = (s * 32 + lane) * 2;
    if (i >= half) continue;
    const float2 c = load_pair(cosine + i), w = load_pair(sine + i), a = head.low[s], b = head.high[s];
    head.low[s] = make_float2(a.x * c.x - b.x * w.x, a.y * c.y - b.y * w.y);
    head.high[s] = make_float2(b.x * c.x + a.x * w.x, b.y * c.y + a.y * w.y);
  }
}

template <KvType Type>
__device__ __forceinline__ void store_head(const Head& head, void* to, std::int64_t first, float inverse, int half,
                                           int lane) {
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    const int i = (s * 32 + lane) * 2;
    if (i >= half) continue;
    store_pair<Type>(to, first + i, head.low[s].x, head.low[s].y, inverse);
    store_pair<Type>(to, first + half + i, head.high[s].x, head.high[s].y, inverse);
  }
}

__device__ __forceinline__ float largest(const Head& head) {
  float most = 0.0F;
#pragma unroll
  for (int s = 0; s < kSteps; ++s)
    most = fmaxf(most, fmaxf(fmaxf(fabsf(head.low[s].x), fabsf(head.low[s].y)),
                             fmaxf(fabsf(head.high[s].x), fabsf(head.high[s].y))));
  return warp_max(most);
}

/// One warp per head of a row.
template <class T, KvType Type>
__global__ void __launch_bounds__(kWarps * 32) rope_kv_kernel(const RopeKvArgs args) {
  ft::grid_dependency_wait();
  ft::grid_dependency_launch();
  const KvLayout& layout = args.layout;
  const int lane = static_cast<int>(threadIdx.x % 32), dim = layout.head_dim, half = dim / 2;
  const int head_number = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / 32);
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  if (head_number >= args.query_heads + 2 * layout.kv_heads) return;
  Head head;
  const std::int64_t column = std::int64_t{head_number} * dim;
  load_head(head, static_cast<const T*>(args.qkv) + row * args.qkv_stride + column,
            args.bias != nullptr ? args.bias + column : nullptr, half, lane);
  const int kv_number = head_number - args.query_heads;
  const bool is_value = kv_number >= layout.kv_heads;
  if (!is_value) {
    const std::int64_t angles = std::int64_t{args.positions[row]} * half;
    rotate(head, args.cosine + angles, args.sine + angles, half, lane);
  }
  if (kv_number < 0) {
    constexpr KvType kSame = sizeof(T) == 4 ? KvType::f32 : KvType::bf16;
    store_head<kSame>(head, args.q_out, row * args.q_stride + column, 1.0F, half, lane);
    return;
  }
  const std::int64_t slot = args.slots[row];
  if (slot < 0) return;
  const std::int64_t block = slot / layout.block_tokens, offset = slot % layout.block_tokens;
  const KvPart part = is_value ? KvPart::value : KvPart::key;
  const int kv_head = is_value ? kv_number - layout.kv_heads : kv_number;
  auto* pool = static_cast<unsigned char*>(args.pool);
  float inverse = 1.0F;
  if constexpr (has_scales(Type)) {
    constexpr float kCodeMax = Type == KvType::int8 ? 127.0F : 448.0F;
    const float most = largest(head);
    inverse = most > 0.0F ? kCodeMax / most : 0.0F;
    auto* scales =
        reinterpret_cast<float*>(pool + scale_offset_bytes(layout, block, args.layer, part, kv_head));
    if (lane == 0) scales[offset] = most / kCodeMax;
  }
  store_head<Type>(head, pool + page_offset_bytes(layout, block, args.layer, part, kv_head), offset * dim, inverse,
                   half, lane);
}

template <class T>
void launch(const RopeKvArgs& args, Stream stream) {
  const int heads = args.query_heads + 2 * args.layout.kv_heads;
  const dim3 grid(args.rows, (heads + kWarps - 1) / kWarps);
  switch (args.layout.type) {
    case KvType::f32:
      FT_LAUNCH_DEPENDENT((rope_kv_kernel<T, KvType::f32>), grid, kWarps * 32, 0, stream, args);
      break;
    case KvType::bf16:
      FT_LAUNCH_DEPENDENT((rope_kv_kernel<T, KvType::bf16>), grid, kWarps * 32, 0, stream, args);
      break;
    case KvType::int8:
      FT_LAUNCH_DEPENDENT((rope_kv_kernel<T, KvType::int8>), grid, kWarps * 32, 0, stream, args);
      break;
    case KvType::fp8:
      FT_LAUNCH_DEPENDENT((rope_kv_kernel<T, KvType::fp8>), grid, kWarps * 32, 0, stream, args);
      break;
  }
}

}  // namespace

void rope_kv(const RopeKvArgs& args, Stream stream) {
  if (args.rows == 0) return;
  const KvLayout& layout = args.layout;
  const std::int64_t columns = (std::int64_t{args.query_heads} + 2 * layout.kv_heads) * layout.head_dim;
  const auto bytes = static_cast<std::uintptr_t>(element_bytes(args.activation));
  require(args.rows > 0 && args.query_heads > 0 && layout.kv_heads > 0 && layout.block_tokens > 0, "rope_kv",
          "bad shape");
  require(layout.head_dim > 0 && layout.head_dim % 16 == 0 && layout.head_dim <= kSteps * 128, "rope_kv",
          "head_dim must be a multiple of 16, at most 256");
  require(args.layer >= 0 && args.layer < layout.layers, "rope_kv", "no such layer");
  require(args.qkv_stride >= columns && args.qkv_stride % 2 == 0 && args.q_stride % 2 == 0 &&
              args.q_stride >= std::int64_t{args.query_heads} * layout.head_dim &&
              reinterpret_cast<std::uintptr_t>(args.qkv) % (2 * bytes) == 0 &&
              reinterpret_cast<std::uintptr_t>(args.q_out) % (2 * bytes) == 0 &&
              reinterpret_cast<std::uintptr_t>(args.pool) % 16 == 0,
          "rope_kv", "bad stride or alignment");
  if (args.activation == ElementType::f32)
    launch<float>(args, stream);
  else
    launch<Bf16>(args, stream);
}

}  // namespace foretoken::cuda

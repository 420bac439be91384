#include "kernels/cuda/rms_norm.hpp"

#include "kernels/cuda/rows.hpp"

namespace foretoken::cuda {
namespace {

// With up to 512 threads, rows of up to 8192 stay in registers between the sum and the scaling.
constexpr int kThreadsMax = 512;
constexpr int kKept = 2;

template <class T>
__global__ void __launch_bounds__(kThreadsMax) rms_norm_kernel(const RmsNormArgs args, bool is_aligned) {
  FT_SHARED(float, partial, 32);
  ft::grid_dependency_wait();
  ft::grid_dependency_launch();
  const auto out_row = static_cast<std::int64_t>(blockIdx.x);
  const std::int64_t row = args.row_index != nullptr ? args.row_index[out_row] : out_row;
  float* residual = args.residual + row * args.residual_stride;
  const T* delta = static_cast<const T*>(args.delta);
  if (delta != nullptr) delta += row * args.delta_stride;
  const bool is_written = args.row_index == nullptr && delta != nullptr;
  T* out = static_cast<T*>(args.out) + out_row * args.out_stride;
  const int chunked = is_aligned ? args.dim / kRowChunk * kRowChunk : 0;
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int first = thread * kRowChunk, step = threads * kRowChunk;

  const auto load = [&](int i, float(&x)[kRowChunk], bool has_delta) {
    load_chunk(residual + i, x);
    if (!has_delta) return;
    float d[kRowChunk];
    load_chunk(delta + i, d);
#pragma unroll
    for (int j = 0; j < kRowChunk; ++j) x[j] += d[j];
  };
  const auto load_one = [&](int i, bool has_delta) {
    return has_delta ? residual[i] + ft::to_float(delta[i]) : residual[i];
  };
  float sum = 0.0F, kept[kKept][kRowChunk];
  const auto add = [&](int i, float(&x)[kRowChunk]) {
    load(i, x, delta != nullptr);
    if (is_written) store_chunk(residual + i, x);
#pragma unroll
    for (int j = 0; j < kRowChunk; ++j) sum += x[j] * x[j];
  };
#pragma unroll
  for (int k = 0; k < kKept; ++k)
    if (first + k * step < chunked) add(first + k * step, kept[k]);
  for (int i = first + kKept * step; i < chunked; i += step) {
    float x[kRowChunk];
    add(i, x);
  }
  for (int i = chunked + thread; i < args.dim; i += threads) {
    const float x = load_one(i, delta != nullptr);
    if (is_written) residual[i] = x;
    sum += x * x;
  }
  const float mean = block_sum(sum, partial) / static_cast<float>(args.dim);
  const float scale = 1.0F / sqrtf(mean + args.epsilon);

  const auto finish = [&](int i, float(&x)[kRowChunk]) {
    float w[kRowChunk];
    load_chunk(args.weight + i, w);
#pragma unroll
    for (int j = 0; j < kRowChunk; ++j) x[j] *= scale * w[j];
    store_chunk(out + i, x);
  };
  // What was written includes delta; each thread reads back only its own.
  const bool has_delta = delta != nullptr && !is_written;
#pragma unroll
  for (int k = 0; k < kKept; ++k)
    if (first + k * step < chunked) finish(first + k * step, kept[k]);
  for (int i = first + kKept * step; i < chunked; i += step) {
    float x[kRowChunk];
    load(i, x, has_delta);
    finish(i, x);
  }
  for (int i = chunked + thread; i < args.dim; i += threads)
    store_one(out + i, load_one(i, has_delta) * (scale * args.weight[i]));
}

}  // namespace

void rms_norm(const RmsNormArgs& args, Stream stream) {
  if (args.rows == 0) return;
  const auto bytes = static_cast<int>(element_bytes(args.activation));
  require(args.rows > 0 && args.dim > 0 && args.residual_stride >= args.dim && args.out_stride >= args.dim &&
              (args.delta == nullptr || args.delta_stride >= args.dim),
          "rms_norm", "bad shape");
  const bool is_aligned = has_aligned_rows(args.residual, args.residual_stride, 4) &&
                          has_aligned_rows(args.weight, 0, 4) &&
                          has_aligned_rows(args.out, args.out_stride, bytes) &&
                          (args.delta == nullptr || has_aligned_rows(args.delta, args.delta_stride, bytes));
  const int threads = row_threads(args.dim, kThreadsMax);
  if (args.activation == ElementType::f32)
    FT_LAUNCH_DEPENDENT((rms_norm_kernel<float>), args.rows, threads, 0, stream, args, is_aligned);
  else
    FT_LAUNCH_DEPENDENT((rms_norm_kernel<Bf16>), args.rows, threads, 0, stream, args, is_aligned);
}

}  // namespace foretoken::cuda

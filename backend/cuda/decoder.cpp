#include "backend/cuda/decoder.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

/// Largest decode batch that is recorded; above it a step is long enough to hide its launches.
constexpr int kBucketMax = 512;

/// The batch size that a decode step of `rows` is filled up to: 1, 2, 4, 8, then by 8, by 32 from 128 on.
/// Dead rows cost their share of the products and nothing in attention.
int bucket_of(int rows) {
  for (int size = 1; size <= 8; size *= 2)
    if (rows <= size) return size;
  const int step = rows <= 128 ? 8 : 32;
  return (rows + step - 1) / step * step;
}

bool is_decode_only(const StepRows& rows) {
  return rows.rows() > 0 && rows.rows() == rows.sequences() &&
         static_cast<int>(rows.sampled.size()) == rows.rows();
}

cuda::KvLayout layout_of(const ModelShape& shape, cuda::KvType type, std::int32_t block_tokens) {
  cuda::KvLayout layout;
  layout.type = type;
  layout.layers = shape.layers;
  layout.kv_heads = shape.kv_heads;
  layout.block_tokens = block_tokens;
  layout.head_dim = shape.head_dim;
  return layout;
}

std::int64_t pages_for(std::int64_t tokens, std::int32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens;
}

}  // namespace

template <class Work>
void CudaDecoder::noting_loss(const Work& work) {
  // Kernels and libraries speak of themselves; whoever drives the backend knows devices.
  try {
    work();
  } catch (const DeviceError&) {
    is_lost_ = true;
    throw;
  } catch (const cuda::LaunchError& error) {
    is_lost_ = true;
    throw DeviceError(error.what());
  } catch (const cuda::LibraryError& error) {
    is_lost_ = true;
    throw DeviceError(error.what());
  }
}

CudaDecoder::CudaDecoder(Runtime<Cuda>& runtime, const Weights<Cuda>& weights, cuda::KvType kv_type,
                         const DecoderOptions& options)
    : runtime_(&runtime),
      layout_(layout_of(weights.shape, kv_type, options.block_tokens)),
      pool_(runtime.allocate(static_cast<std::size_t>((options.kv_blocks + 1) * layout_.block_bytes()),
                             "the KV pool")),
      host_pool_(runtime.allocate_host(static_cast<std::size_t>(options.host_blocks * layout_.block_bytes()),
                                       "the swap pool")),
      transformer_(runtime, weights, layout_, pool_.data(), options.tokens_max + 1),
      swapped_(runtime.make_event()),
      done_(runtime.make_event()) {
  // The dummy block alone is read before it is written.
  runtime.zero(pool_.data() + options.kv_blocks * layout_.block_bytes(),
               static_cast<std::size_t>(layout_.block_bytes()), runtime.steps());
  runtime.synchronize(runtime.steps());
  const std::int64_t pages = pages_for(options.tokens_max + 1, options.block_tokens);
  bucket_max_ = std::min(kBucketMax, bucket_of(std::max(1, options.sequences)));
  transformer_.stages().reserve(std::max(options.rows, bucket_max_), std::max(options.sequences, bucket_max_),
                                pages * std::max(1, options.sequences));
}

void CudaDecoder::launch(const StepWork& work) {
  noting_loss([&] { start(work); });
}

void CudaDecoder::start(const StepWork& work) {
  swap(work);
  run_step(work.rows);
  runtime_->record(done_, runtime_->steps());
}

void CudaDecoder::copy_blocks(const BlockCopies& copies, const std::byte* source, std::byte* target) const {
  const std::int64_t bytes = layout_.block_bytes();
  const std::size_t count = copies.from.size();
  for (std::size_t i = 0; i < count;) {
    // Blocks that follow each other in both pools go in one piece.
    std::size_t run = 1;
    while (i + run < count && copies.from[i + run] == copies.from[i] + static_cast<std::int32_t>(run) &&
           copies.to[i + run] == copies.to[i] + static_cast<std::int32_t>(run))
      ++run;
    runtime_->copy(target + copies.to[i] * bytes, source + copies.from[i] * bytes,
                   run * static_cast<std::size_t>(bytes), runtime_->copies());
    i += run;
  }
}

void CudaDecoder::swap(const StepWork& work) {
  if (work.copies_out.empty() && work.copies_in.empty()) return;
  // The step before has ended, so the blocks are whole. Copies out come first: what they save may be
  // overwritten by anything after them.
  copy_blocks(work.copies_out, pool_.data(), host_pool_.data());
  copy_blocks(work.copies_in, host_pool_.data(), pool_.data());
  runtime_->record(swapped_, runtime_->copies());
  runtime_->wait(runtime_->steps(), swapped_);
}

void CudaDecoder::run_step(const StepRows& rows) {
  Stages<Cuda>& stages = transformer_.stages();
  const bool is_recorded = is_decode_only(rows) && rows.rows() <= bucket_max_;
  const int bucket = is_recorded ? bucket_of(rows.rows()) : 0;
  const int sampled = std::max(bucket, static_cast<int>(rows.sampled.size()));
  if (stages.reserve(std::max(bucket, rows.rows()), sampled, static_cast<std::int64_t>(rows.pages.size())))
    buckets_.clear();
  stages.prepare(rows, bucket);
  if (rows.rows() == 0) return;
  stages.send(runtime_->steps());
  if (is_recorded)
    run_bucket(buckets_[bucket]);
  else
    forward();
}

void CudaDecoder::run_bucket(Bucket& bucket) {
  // The first time loads kernels and chooses algorithms, neither of which may happen while work is recorded.
  if (!bucket.has_run) {
    forward();
    bucket.has_run = true;
    return;
  }
  if (bucket.graph == nullptr) {
    runtime_->begin_capture(runtime_->steps());
    forward();
    bucket.graph = runtime_->end_capture(runtime_->steps());
  }
  runtime_->launch(bucket.graph, runtime_->steps());
}

void CudaDecoder::forward() {
  CudaQueue queue{runtime_->steps()};
  transformer_.forward(queue);
  transformer_.stages().fetch(runtime_->steps());
}

void CudaDecoder::finish() {
  // A lost device answers nothing any more; whoever ends the run joins its last step once more.
  if (!is_lost_) noting_loss([&] { runtime_->synchronize(done_); });
}

std::span<const std::int32_t> CudaDecoder::sampled() const {
  if (is_lost_) return {};
  return transformer_.stages().sampled();
}

std::span<const float> CudaDecoder::logits(int i) {
  return transformer_.stages().logits(i, runtime_->steps());
}

}  // namespace foretoken

#pragma once
#include <map>
#include <vector>

#include "backend/cuda/stages.hpp"
#include "backend/decoder.hpp"
#include "backend/transformer.hpp"

namespace foretoken {

/// Pools and transformer on a CUDA device. Decode steps run as recorded graphs, one for each of a few batch
/// sizes, smaller batches filled up with dead rows; steps with chunks are launched kernel by kernel. Swaps
/// run on a stream of their own, and the step waits for them.
class CudaDecoder final : public Decoder {
 public:
  /// `runtime` and `weights` must outlive it. DeviceError when memory is short.
  CudaDecoder(Runtime<Cuda>& runtime, const Weights<Cuda>& weights, cuda::KvType kv_type,
              const DecoderOptions& options);

  void launch(const StepWork& work) override;
  void finish() override;
  std::span<const std::int32_t> sampled() const override;
  std::span<const float> logits(int i) override;

 private:
  /// A batch size that decode steps are filled up to, and the recorded work once it was run by hand.
  struct Bucket {
    bool has_run = false;
    CudaHandle graph{nullptr, nullptr};
  };

  template <class Work>
  void noting_loss(const Work& work);
  void start(const StepWork& work);
  void swap(const StepWork& work);
  void copy_blocks(const BlockCopies& copies, const std::byte* source, std::byte* target) const;
  void run_step(const StepRows& rows);
  void run_bucket(Bucket& bucket);
  void forward();

  Runtime<Cuda>* runtime_;
  cuda::KvLayout layout_;
  CudaMemory pool_;
  CudaMemory host_pool_;
  Transformer<Cuda> transformer_;
  CudaHandle swapped_;
  CudaHandle done_;
  std::map<int, Bucket> buckets_;
  int bucket_max_ = 0;
  bool is_lost_ = false;
};

}  // namespace foretoken

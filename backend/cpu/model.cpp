#include "backend/cpu/model.hpp"

#include <cstring>

#include "backend/cpu/limits.hpp"
#include "backend/cpu/stages.hpp"
#include "backend/transformer.hpp"
#include "kernels/cpu/isa.hpp"
#include "sim/base/check.hpp"

namespace foretoken {
namespace {

cpu::CopyBlocksArgs block_copy(const BlockCopies& copies, std::size_t block_bytes, const cpu::Buffer& source,
                               const cpu::Buffer& target) {
  return {static_cast<int>(copies.from.size()),
          block_bytes,
          source.data(),
          target.data(),
          copies.from.data(),
          copies.to.data()};
}

/// Pools and transformer on the team, whose caller's thread is a member: it works inside `finish`.
class CpuDecoder final : public Decoder {
 public:
  CpuDecoder(Runtime<Cpu>& runtime, const Weights<Cpu>& weights, const DecoderOptions& options)
      : runtime_(&runtime),
        block_bytes_(kv_layout(weights.shape, weights.type, options.block_tokens).block_bytes()),
        is_beside_(options.depth > 0),
        pool_(
            runtime.allocate(static_cast<std::size_t>(options.kv_blocks + 1) * block_bytes_, "the KV pool")),
        host_pool_(
            runtime.allocate(static_cast<std::size_t>(options.host_blocks) * block_bytes_, "the swap pool")),
        transformer_(runtime, weights, kv_layout(weights.shape, weights.type, options.block_tokens),
                     pool_.data(), options.tokens_max + 1) {
    touch();
    transformer_.stages().reserve(options.rows, options.sequences);
  }

  void launch(const StepWork& work) override {
    work_ = &work;
    transformer_.stages().prepare(work.rows);
    if (is_beside_) runtime_->launch(region_);
  }

  void finish() override {
    FT_CHECK(work_ != nullptr);
    if (is_beside_)
      runtime_->wait();
    else
      runtime_->run(region_);
    work_ = nullptr;
  }

  std::span<const std::int32_t> sampled() const override { return transformer_.stages().sampled(); }
  std::span<const float> logits(int i) override { return transformer_.stages().logits(i); }

 private:
  /// The parallel region of a step.
  struct Region {
    CpuDecoder* self;
    void operator()(const cpu::Team& team) const { self->run(team); }
  };

  /// Every page is touched now, so that no step pays for page faults.
  void touch() {
    const auto work = [this](const cpu::Team& team) {
      for (const cpu::Buffer* pool : {&pool_, &host_pool_}) {
        if (pool->size() == 0) continue;  // an empty pool has no address
        const cpu::Range part = cpu::split(static_cast<std::int64_t>(pool->size()), team.share);
        std::memset(pool->data() + part.begin, 0, static_cast<std::size_t>(part.end - part.begin));
      }
    };
    runtime_->run(work);
  }

  void run(const cpu::Team& team) {
    // Copies out come first: what they save may be overwritten by anything after them.
    if (!work_->copies_out.empty()) {
      cpu::copy_blocks(block_copy(work_->copies_out, block_bytes_, pool_, host_pool_), team.share);
      team.barrier();
    }
    if (!work_->copies_in.empty()) {
      cpu::copy_blocks(block_copy(work_->copies_in, block_bytes_, host_pool_, pool_), team.share);
      team.barrier();
    }
    transformer_.forward(team);
  }

  Runtime<Cpu>* runtime_;
  std::size_t block_bytes_;
  bool is_beside_;
  cpu::Buffer pool_;
  cpu::Buffer host_pool_;
  Transformer<Cpu> transformer_;
  const StepWork* work_ = nullptr;
  Region region_{this};
};

}  // namespace

cpu::KvLayout kv_layout(const ModelShape& shape, ElementType type, std::int32_t block_tokens) {
  cpu::KvLayout layout;
  layout.type = type;
  layout.layers = shape.layers;
  layout.kv_heads = shape.kv_heads;
  layout.block_tokens = block_tokens;
  layout.head_dim = shape.head_dim;
  return layout;
}

CpuModel::CpuModel(const ModelShape& shape, ElementType type, int threads, std::uint64_t seed,
                   const std::atomic<bool>* stop)
    : runtime_(threads > 0 ? threads : usable_processors()),
      weights_(random_weights(shape, type, seed, runtime_, stop)) {}

Precision CpuModel::weight_precision() const {
  return weights_.type == ElementType::f32 ? Precision::f32 : Precision::bf16;
}

ProfileOrigin CpuModel::origin() const {
  ProfileOrigin origin;
  origin.device = "CPU";
  origin.driver = std::string(cpu::isa_name(cpu::active_isa()));
  origin.clocks = "as found";
  origin.threads = runtime_.threads();
  return origin;
}

DeviceSheet CpuModel::measure_limits(double seconds) {
  // Few readings at the least, so that short calibrations are short.
  constexpr int kRounds = 4;
  const int threads = runtime_.threads();
  return machine_sheet(bench::measure_limits(threads, seconds, threads, kRounds), threads);
}

std::unique_ptr<Decoder> CpuModel::decoder(const DecoderOptions& options) {
  return std::make_unique<CpuDecoder>(runtime_, weights_, options);
}

}  // namespace foretoken

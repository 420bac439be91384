#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/kv_cache.hpp"
#include "backend/prompt.hpp"
#include "backend/runtime.hpp"
#include "backend/transformer.hpp"
#include "backend/wall_clock.hpp"
#include "backend/weights.hpp"
#include "kernels/cpu/kernels.hpp"
#include "sim/core/executor.hpp"

namespace foretoken {

/// What a live executor must hold.
struct LiveOptions {
  ElementType kv_type = ElementType::bf16;
  std::int32_t block_tokens = 16;
  /// Blocks of the device pool and of the swap pool, as in Capacity.
  std::int64_t kv_blocks = 0;
  std::int64_t host_blocks = 0;
  /// Longest sequence, prompt and answer together.
  std::int32_t tokens_max = 0;
  /// Rows and sampled rows to have room for from the start; more are taken as they come.
  std::int32_t rows = 0;
  std::int32_t sequences = 0;
  /// 1: `launch` starts the other threads and `complete` joins them; 0: `complete` does all.
  std::int32_t depth = 0;
};

/// The KV pool's layout for a model.
cpu::KvLayout kv_layout(const ModelShape& shape, const LiveOptions& options);
/// The kernel's arguments for copies between two pools; a view of `copies`.
cpu::CopyBlocksArgs block_copy(const BlockCopies& copies, std::size_t block_bytes, const void* source,
                               void* target);

/// Runs plans on the CPU. Serial copies are part of the step. Not for several threads at once: the thread
/// that calls `complete` is a member of the team.
class LiveExecutor final : public Executor {
 public:
  /// `runtime`, `weights` and `clock` must outlive it. DeviceError when memory is short.
  LiveExecutor(Runtime<Cpu>& runtime, const Weights& weights, const WallClock& clock,
               const LiveOptions& options);

  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  /// The CPU has no link that works beside the steps; asking is our bug.
  Time transfer_end(const Copy& copy, Time begin) override;
  void on_accept(Handle handle, const Offer& offer) override;
  void on_release(Handle handle) override;

  /// Where the core numbers blocks (prefix cache): asked at each launch for the table of every slot that
  /// takes part. The answer must cover the slot's context after the step, and live until the next launch.
  void use_block_tables(std::function<std::span<const std::int32_t>(Slot)> tables);
  /// Told the answer of each request when it is released.
  void set_output_sink(std::function<void(RequestId, std::span<const std::int32_t>)> sink);
  /// Tokens emitted so far by a live request.
  std::span<const std::int32_t> emitted(Handle handle) const;
  /// Logits of the sampled rows of the step that ended last, in the order of chunks and decodes.
  std::span<const float> logits(int sampled_row) const { return transformer_.logits(sampled_row); }
  /// The memory behind it, for tests and reports.
  const KvCache& cache() const { return cache_; }

 private:
  /// What is known of a request while it lives, resident or not.
  struct Sequence {
    Prompt prompt;
    std::vector<std::int32_t> emitted;
    RequestId id{};
    std::int32_t output_tokens = 0;
    Slot slot = kNoSlot;
  };
  /// Row of a resident sequence.
  struct Resident {
    Handle request = kNoHandle;
    std::int32_t context = 0;
    std::uint64_t last_plan = 0;
  };
  /// Whom a sampled row belongs to; a dead row to nobody.
  struct SampledRow {
    Handle request = kNoHandle;
  };
  /// The parallel region of a step.
  struct StepWork {
    LiveExecutor* self;
    void operator()(const cpu::Team& team) const { self->run_step(team); }
  };

  Resident& resident(Slot slot);
  void vacate(Slot slot);
  void leave(const StepPlan& plan);
  void enter(const StepPlan& plan);
  void refresh_table(Slot slot, std::int32_t tokens);
  void add_rows(const StepPlan& plan);
  void add_sequence(Slot slot, std::int32_t context, std::int32_t tokens);
  void add_chunk(const Chunk& chunk);
  void add_padding(std::int32_t tokens, std::int32_t context);
  void add_dead_rows(const StepPlan& plan);
  void add_dead_row(std::span<const std::int32_t> table, std::int32_t context);
  std::int32_t known_token(const Sequence& sequence, std::int32_t position) const;
  void run_step(const cpu::Team& team);
  void take_tokens();

  Runtime<Cpu>* runtime_;
  const WallClock* clock_;
  LiveOptions options_;
  std::int32_t vocab_;
  KvCache cache_;
  Transformer<Cpu> transformer_;
  std::function<std::span<const std::int32_t>(Slot)> tables_;
  std::function<void(RequestId, std::span<const std::int32_t>)> sink_;
  std::vector<Sequence> sequences_;
  std::vector<Resident> residents_;
  std::vector<std::int32_t> dummy_table_;
  StepRows rows_;
  std::vector<SampledRow> sampled_;
  BlockCopies copies_out_;
  BlockCopies copies_in_;
  StepWork work_{this};
};

}  // namespace foretoken

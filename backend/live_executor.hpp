#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/decoder.hpp"
#include "backend/kv_tables.hpp"
#include "backend/prompt.hpp"
#include "backend/step_rows.hpp"
#include "backend/wall_clock.hpp"
#include "sim/core/executor.hpp"

namespace foretoken {

/// Runs plans on a device. Serial copies are part of the step. Not for several threads at once: on the CPU,
/// the thread that calls `complete` works on the step.
class LiveExecutor final : public Executor {
 public:
  /// `model` and `clock` must outlive it. DeviceError when memory is short.
  LiveExecutor(DeviceModel& model, const WallClock& clock, const DecoderOptions& options);

  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  /// No device copies beside the steps yet; asking is our bug.
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
  std::span<const float> logits(int sampled_row) { return decoder_->logits(sampled_row); }
  /// Which blocks are whose, for tests and reports.
  const KvTables& blocks() const { return blocks_; }

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
  void take_tokens();

  const WallClock* clock_;
  DecoderOptions options_;
  std::int32_t vocab_;
  KvTables blocks_;
  std::unique_ptr<Decoder> decoder_;
  std::function<std::span<const std::int32_t>(Slot)> tables_;
  std::function<void(RequestId, std::span<const std::int32_t>)> sink_;
  std::vector<Sequence> sequences_;
  std::vector<Resident> residents_;
  std::vector<std::int32_t> dummy_table_;
  StepWork work_;
  std::vector<SampledRow> sampled_;
};

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/decoder.hpp"
#include "backend/kv_tables.hpp"
#include "sim/core/request.hpp"

namespace foretoken::testing {

/// A decoder fed sequence by sequence: what a scheduler and a live executor do, by hand.
class DecoderDriver {
 public:
  DecoderDriver(DeviceModel& model, const DecoderOptions& options)
      : block_tokens_(options.block_tokens),
        tables_(options.block_tokens, options.kv_blocks, options.host_blocks),
        decoder_(model.decoder(options)) {}

  /// Adds `tokens` at positions `context` and up of the sequence in `slot`; its last row is sampled.
  void add(Slot slot, std::span<const std::int32_t> tokens, std::int32_t context) {
    const std::int32_t after = context + static_cast<std::int32_t>(tokens.size());
    tables_.grow(slot, after);
    const std::span<const std::int32_t> table = tables_.table(slot);
    for (std::int32_t position = context; position < after; ++position) {
      work_.rows.tokens.push_back(tokens[static_cast<std::size_t>(position - context)]);
      work_.rows.positions.push_back(position);
      work_.rows.kv_slots.push_back(std::int64_t{table[static_cast<std::size_t>(position / block_tokens_)]} *
                                        block_tokens_ +
                                    position % block_tokens_);
    }
    work_.rows.pages.insert(work_.rows.pages.end(), table.begin(),
                            table.begin() + (after + block_tokens_ - 1) / block_tokens_);
    work_.rows.close_sequence(after);
    work_.rows.sampled.push_back(work_.rows.rows() - 1);
  }
  /// Sends the slot's blocks to the host pool in the next step.
  void swap_out(Slot slot, std::int32_t tokens) {
    tables_.swap_out(slot, Handle{static_cast<std::uint32_t>(index(slot))}, tokens, work_.copies_out);
  }
  /// Brings them back in the next step.
  void swap_in(Slot slot, std::int32_t tokens) {
    tables_.grow(slot, tokens);
    tables_.swap_in(slot, Handle{static_cast<std::uint32_t>(index(slot))}, work_.copies_in);
  }
  /// Runs what was added and returns the logits of the sampled rows.
  std::vector<std::vector<float>> run() {
    decoder_->launch(work_);
    decoder_->finish();
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < work_.rows.sampled.size(); ++i) {
      const std::span<const float> row = decoder_->logits(static_cast<int>(i));
      logits.emplace_back(row.begin(), row.end());
    }
    work_.clear();
    return logits;
  }

 private:
  std::int32_t block_tokens_;
  KvTables tables_;
  std::unique_ptr<Decoder> decoder_;
  StepWork work_;
};

}  // namespace foretoken::testing

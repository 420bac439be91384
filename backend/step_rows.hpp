#pragma once
#include <cstdint>
#include <vector>

namespace foretoken {

/// The rows of one step: new tokens of all sequences, those of one sequence side by side. Vectors keep their
/// capacity from step to step.
struct StepRows {
  /// [rows]: token ids, their positions in the sequence, and where keys and values go (block * block_tokens +
  /// offset, or negative for nowhere).
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> kv_slots;
  /// [sequences + 1]: first row of each sequence; [sequences]: tokens cached once the step is done.
  std::vector<std::int32_t> row_begin{0};
  std::vector<std::int32_t> context;
  /// [sequences + 1] into `pages`.
  std::vector<std::int32_t> page_begin{0};
  std::vector<std::int32_t> pages;
  /// Rows that go through the LM head.
  std::vector<std::int32_t> sampled;

  int rows() const { return static_cast<int>(tokens.size()); }
  int sequences() const { return static_cast<int>(context.size()); }
  /// Ends the sequence whose rows and pages were appended last.
  void close_sequence(std::int32_t context_after) {
    context.push_back(context_after);
    row_begin.push_back(rows());
    page_begin.push_back(static_cast<std::int32_t>(pages.size()));
  }
  /// Forgets all rows and keeps the capacity.
  void clear() {
    tokens.clear();
    positions.clear();
    kv_slots.clear();
    row_begin.assign(1, 0);
    context.clear();
    page_begin.assign(1, 0);
    pages.clear();
    sampled.clear();
  }
};

/// Blocks to be copied between the device pool and the host pool, pair by pair.
struct BlockCopies {
  std::vector<std::int32_t> from;
  std::vector<std::int32_t> to;
  bool empty() const { return from.empty(); }
  /// Forgets the pairs and keeps the capacity.
  void clear() {
    from.clear();
    to.clear();
  }
};

/// Everything a device does in one step, in this order.
struct StepWork {
  /// From the device pool to the host pool.
  BlockCopies copies_out;
  /// From the host pool to the device pool.
  BlockCopies copies_in;
  StepRows rows;
  /// Forgets everything and keeps the capacity.
  void clear() {
    copies_out.clear();
    copies_in.clear();
    rows.clear();
  }
};

}  // namespace foretoken

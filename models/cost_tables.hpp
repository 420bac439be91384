#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "models/cost.hpp"

namespace foretoken {

/// Integer values of a function of a count: one for each small count, then a straight tail.
struct Ramp {
  std::vector<std::int64_t> values_ps{0};  ///< At 0, 1, 2, ...; at least one.
  std::int64_t tail_ps = 0;                ///< Per unit beyond the last value.
  /// The value at a count of at least 0.
  [[nodiscard]] std::int64_t at(std::int64_t count) const {
    const auto last = static_cast<std::int64_t>(values_ps.size()) - 1;
    if (count <= last) return values_ps[static_cast<std::size_t>(count)];
    return values_ps.back() + (count - last) * tail_ps;
  }
};

/// The region that a cost stands for; queries beyond it are priced by the tails and counted.
struct MeasuredRange {
  std::int64_t tokens_max = std::numeric_limits<std::int64_t>::max();   ///< Most computed tokens in a step.
  std::int32_t decodes_max = std::numeric_limits<std::int32_t>::max();  ///< Most decodes.
  std::int32_t context_max = std::numeric_limits<std::int32_t>::max();  ///< Longest context or chunk end.
  friend bool operator==(const MeasuredRange&, const MeasuredRange&) = default;
};

/// Every kind of cost, as integers. A step costs
///   body(computed tokens) + head(sampled rows) + decode(decodes)
///   + slopes x context tokens by segment + ragged x (decodes x longest - sum)
///   + per chunk: fixed, context read, pairs by segment of the token's position
///   + padding + interaction of chunks with decodes (the sum never below body and head).
/// Terms in contexts are linear between knots, which gives windows their closed form.
struct CostTables {
  Grade grade = Grade::stated;                    ///< Kind of evidence.
  Ramp body;                                      ///< By computed tokens; host time included.
  Ramp head;                                      ///< By sampled rows.
  Ramp decode;                                    ///< By decodes: attention at context 0.
  std::vector<std::int64_t> context_knots{0};     ///< From 0, rising.
  std::vector<std::int64_t> decode_slopes_ps{0};  ///< By decodes (the last for all more) x knots.
  std::vector<std::int64_t> ragged_ps{0};         ///< By decodes (the last for all more).
  std::int64_t chunk_ps = 0;                      ///< Per chunk.
  std::int64_t chunk_context_ps = 0;              ///< Per context token of a chunk.
  std::vector<std::int64_t> pair_ps{0};           ///< Per query-key pair, by context knot.
  std::int64_t padded_token_ps = 0;               ///< Per padded prompt token, beside the body.
  std::int64_t padded_row_ps = 0;                 ///< Per dead row, beside body and head.
  std::int64_t mixed_ps = 0;                      ///< Per step with chunks and decodes, either sign.
  std::int64_t mixed_decode_ps = 0;               ///< Per decode of such a step, either sign.
  TransferCost transfer;                          ///< Swap copies.
  MeasuredRange range;                            ///< What was measured.
  HardwareFloor floor;                            ///< What the machine allows.
};

/// A cost that prices by these tables.
[[nodiscard]] std::unique_ptr<StepCost> make_table_cost(CostTables tables);

/// Sum over the positions p in [begin, end) of min(max(p + 1 - low, 0), high - low): query-key pairs of a
/// chunk whose key distance falls into the segment [low, high).
[[nodiscard]] std::int64_t pairs_in_segment(std::int64_t begin, std::int64_t end, std::int64_t low,
                                            std::int64_t high);

/// End of the segment that starts at knot `index`; the last one never ends.
[[nodiscard]] inline std::int64_t segment_end(const std::vector<std::int64_t>& knots, std::size_t index) {
  constexpr std::int64_t kEndless = std::int64_t{1} << 31;
  return index + 1 < knots.size() ? knots[index + 1] : kEndless;
}

}  // namespace foretoken

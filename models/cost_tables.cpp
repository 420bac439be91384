#include "models/cost_tables.hpp"

#include <algorithm>
#include <string>

#include "sim/base/check.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

void append(std::string& text, std::string_view name, std::initializer_list<std::int64_t> values) {
  text.append(name);
  for (const std::int64_t value : values) text.append(" ").append(std::to_string(value));
  text.append("\n");
}

void append(std::string& text, std::string_view name, const std::vector<std::int64_t>& values) {
  text.append(name);
  for (const std::int64_t value : values) text.append(" ").append(std::to_string(value));
  text.append("\n");
}

std::string hash_of(const CostTables& tables) {
  std::string text(grade_name(tables.grade));
  text.append("\n");
  append(text, "body", tables.body.values_ps);
  append(text, "head", tables.head.values_ps);
  append(text, "decode", tables.decode.values_ps);
  append(text, "tails", {tables.body.tail_ps, tables.head.tail_ps, tables.decode.tail_ps});
  append(text, "knots", tables.context_knots);
  append(text, "slopes", tables.decode_slopes_ps);
  append(text, "ragged", tables.ragged_ps);
  append(text, "pairs", tables.pair_ps);
  append(text, "chunk", {tables.chunk_ps, tables.chunk_context_ps});
  append(text, "padding", {tables.padded_token_ps, tables.padded_row_ps});
  append(text, "mixed", {tables.mixed_ps, tables.mixed_decode_ps});
  append(text, "transfer", {tables.transfer.fixed_ps, tables.transfer.block_ps});
  append(text, "range", {tables.range.tokens_max, tables.range.decodes_max, tables.range.context_max});
  const HardwareFloor& floor = tables.floor;
  append(text, "floor", {floor.weights_ps, floor.head_ps, floor.kv_token_ps});
  append(text, "flops", {floor.flops_token_ps, floor.flops_head_ps, floor.flops_pair_ps});
  return sha256(text.append(to_text(floor.tolerance)));
}

class TableCost final : public StepCost {
 public:
  TableCost(std::shared_ptr<const CostTables> tables, std::string hash)
      : tables_(std::move(tables)),
        hash_(std::move(hash)),
        slope_rows_(tables_->decode_slopes_ps.size() / tables_->context_knots.size()),
        has_floor_(tables_->floor != HardwareFloor{.tolerance = tables_->floor.tolerance}) {}

  const TransferCost& transfer() const override { return tables_->transfer; }
  const std::string& hash() const override { return hash_; }
  Grade grade() const override { return tables_->grade; }
  std::unique_ptr<StepCost> clone() const override { return std::make_unique<TableCost>(tables_, hash_); }

 protected:
  std::int64_t price_step(const StepFeatures& features, CostCounters& counters) const override;
  DecodeWindow price_window(const StepFeatures& features, CostCounters& counters) const override;

 private:
  /// First of the slopes of a batch of that many decodes.
  const std::int64_t* slopes_of(std::int64_t decodes) const {
    const std::size_t knots = tables_->context_knots.size();
    return &tables_->decode_slopes_ps[std::min(static_cast<std::size_t>(decodes), slope_rows_ - 1) * knots];
  }
  std::int64_t decode_price(const StepFeatures& features) const;
  std::int64_t chunk_price(const ChunkFeatures& chunk) const;
  /// All of a price but the chunks and what mixing does.
  std::int64_t base_price(const StepFeatures& features, std::int64_t tokens) const {
    return tables_->body.at(tokens) + tables_->head.at(features.sampled_rows) +
           features.padded_tokens * tables_->padded_token_ps + features.padded_rows * tables_->padded_row_ps;
  }
  void count(const StepFeatures& features, std::int64_t tokens, std::int64_t price_ps,
             CostCounters& counters) const;

  std::shared_ptr<const CostTables> tables_;
  std::string hash_;
  std::size_t slope_rows_;
  bool has_floor_;
};

std::int64_t TableCost::decode_price(const StepFeatures& features) const {
  const std::int64_t decodes = features.decode_count;
  if (decodes == 0) return 0;
  // Rows that wait for their batch add to the sum, so that it may exceed what the live ones could have.
  const std::int64_t spread =
      std::max<std::int64_t>(0, decodes * features.decode_context_max - features.decode_context_sum);
  const std::int64_t* slopes = slopes_of(decodes);
  const std::vector<std::int64_t>& knots = tables_->context_knots;
  std::int64_t price = tables_->decode.at(decodes);
  for (std::size_t k = 0; k < knots.size(); ++k) {
    const std::int64_t inside = features.decode_context_sum - decodes * knots[k];
    if (inside <= 0) break;
    price += slopes[k] * std::min(inside, decodes * (segment_end(knots, k) - knots[k]));
  }
  const std::size_t row = std::min(static_cast<std::size_t>(decodes), tables_->ragged_ps.size() - 1);
  return price + tables_->ragged_ps[row] * spread;
}

std::int64_t TableCost::chunk_price(const ChunkFeatures& chunk) const {
  const std::int64_t end = std::int64_t{chunk.context} + chunk.tokens;
  const std::vector<std::int64_t>& knots = tables_->context_knots;
  std::int64_t price = tables_->chunk_ps + chunk.context * tables_->chunk_context_ps;
  for (std::size_t k = 0; k < knots.size() && knots[k] < end; ++k)
    price += tables_->pair_ps[k] * pairs_in_segment(chunk.context, end, knots[k], segment_end(knots, k));
  return price;
}

void TableCost::count(const StepFeatures& features, std::int64_t tokens, std::int64_t price_ps,
                      CostCounters& counters) const {
  const MeasuredRange& range = tables_->range;
  bool context_outside = features.decode_context_max > range.context_max;
  for (const ChunkFeatures& chunk : features.chunks)
    context_outside |= std::int64_t{chunk.context} + chunk.tokens > range.context_max;
  counters.outside_tokens += tokens > range.tokens_max;
  counters.outside_decode_count += features.decode_count > range.decodes_max;
  counters.outside_context += context_outside;
  if (has_floor_) counters.below_floor += is_below_floor(tables_->floor, features, price_ps);
}

std::int64_t TableCost::price_step(const StepFeatures& features, CostCounters& counters) const {
  const std::int64_t tokens = computed_tokens(features);
  const std::int64_t base = base_price(features, tokens);
  std::int64_t price = base + decode_price(features);
  for (const ChunkFeatures& chunk : features.chunks) price += chunk_price(chunk);
  if (!features.chunks.empty() && features.decode_count > 0)
    price = std::max(base, price + tables_->mixed_ps + features.decode_count * tables_->mixed_decode_ps);
  count(features, tokens, price, counters);
  return price;
}

DecodeWindow TableCost::price_window(const StepFeatures& features, CostCounters& counters) const {
  FT_CHECK(is_pure_decode(features), features.chunks.size(), features.decode_count, features.padded_tokens);
  const std::int64_t decodes = features.decode_count;
  const std::int64_t tokens = decodes + features.padded_rows;
  DecodeWindow window;
  window.first_ps = base_price(features, tokens) + decode_price(features);
  count(features, tokens, window.first_ps, counters);
  const std::vector<std::int64_t>& knots = tables_->context_knots;
  std::size_t segment = 0;
  while (segment + 1 < knots.size() && features.decode_context_sum >= decodes * knots[segment + 1]) ++segment;
  window.growth_ps = slopes_of(decodes)[segment] * decodes;
  window.repeats_valid = kRepeatsUnbounded - features.decode_context_max;
  // At a knot both pieces agree, so the repeat that lands on it still belongs to this one.
  if (segment + 1 < knots.size())
    window.repeats_valid = std::min(
        window.repeats_valid, (decodes * knots[segment + 1] - features.decode_context_sum) / decodes + 1);
  // A window ends with the measured range, so that what lies beyond is asked for and counted.
  if (features.decode_context_max <= tables_->range.context_max)
    window.repeats_valid = std::min<std::int64_t>(
        window.repeats_valid, std::int64_t{tables_->range.context_max} - features.decode_context_max + 1);
  window.repeats_valid = std::max<std::int64_t>(window.repeats_valid, 1);
  return window;
}

}  // namespace

std::unique_ptr<StepCost> make_table_cost(CostTables tables) {
  FT_CHECK(!tables.context_knots.empty() && tables.context_knots.front() == 0);
  FT_CHECK(tables.decode_slopes_ps.size() % tables.context_knots.size() == 0, tables.decode_slopes_ps.size());
  FT_CHECK(tables.pair_ps.size() == tables.context_knots.size(), tables.pair_ps.size());
  FT_CHECK(!tables.ragged_ps.empty() && !tables.decode_slopes_ps.empty());
  std::string hash = hash_of(tables);
  return std::make_unique<TableCost>(std::make_shared<const CostTables>(std::move(tables)), std::move(hash));
}

std::int64_t pairs_in_segment(std::int64_t begin, std::int64_t end, std::int64_t low, std::int64_t high) {
  // Sum of min(max(q - low, 0), width) over q = p + 1 in (begin, end]; closed as a triangle and a
  // rectangle.
  const std::int64_t width = high - low;
  const auto sum_to = [&](std::int64_t q) {
    const std::int64_t depth = std::max<std::int64_t>(q - low, 0);
    const std::int64_t sloped = std::min(depth, width);
    return sloped * (sloped + 1) / 2 + (depth - sloped) * width;
  };
  return sum_to(end) - sum_to(begin);
}

}  // namespace foretoken

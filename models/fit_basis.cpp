#include "models/fit_basis.hpp"

#include <algorithm>
#include <cmath>

namespace foretoken {
namespace {

constexpr std::int32_t kDenseTokens = 96;
constexpr double kTokenRatio = 1.1;
constexpr std::int32_t kDenseDecodes = 8;
constexpr double kDecodeRatio = 1.3;
constexpr double kSampledRatio = 4.0;
constexpr std::int32_t kContextKnotMin = 128;
constexpr double kContextRatio = 4.0;
constexpr std::size_t kContextKnotsMax = 5;

std::int32_t mean_context(const StepShape& shape) {
  return static_cast<std::int32_t>(shape.decode_context_sum / std::max(1, shape.decode_count));
}

/// 0 and a few measured contexts: never the longest, which would start a segment without samples.
std::vector<std::int32_t> choose_context_knots(const std::vector<FitPoint>& points) {
  std::vector<std::int32_t> contexts;
  for (const FitPoint& point : points) {
    if (point.shape->decode_count > 0) contexts.push_back(mean_context(*point.shape));
    for (const ChunkFeatures& chunk : point.shape->chunks) contexts.push_back(chunk.context);
  }
  std::sort(contexts.begin(), contexts.end());
  std::vector<std::int32_t> knots{0};
  for (const std::int32_t context : contexts) {
    const double least = knots.size() == 1 ? kContextKnotMin : kContextRatio * knots.back();
    if (context >= least && 2 * context <= contexts.back() && knots.size() < kContextKnotsMax)
      knots.push_back(context);
  }
  return knots;
}

void add_hat(std::vector<double>& row, std::size_t first, const std::vector<std::int32_t>& knots, double at,
             double factor) {
  const KnotPlace place = place_among(knots, at);
  row[first + place.low] += factor * (1.0 - place.share);
  if (place.share > 0) row[first + place.low + 1] += factor * place.share;
}

}  // namespace

FitBasis::FitBasis(const std::vector<FitPoint>& points) {
  std::vector<std::int32_t> tokens, sampled{0, 1}, decodes;
  std::int32_t tokens_max = 1;
  for (const FitPoint& point : points) {
    const StepShape& shape = *point.shape;
    const auto computed = static_cast<std::int32_t>(computed_tokens(shape.features()));
    tokens_max = std::max(tokens_max, computed);
    // Mixed steps are to be composed of the others: their odd token counts make no knots.
    if (shape.chunks.empty() || shape.decode_count == 0) tokens.push_back(computed);
    if (shape.decode_count > 0) decodes.push_back(shape.decode_count);
    sampled.push_back(shape.sampled_rows);
  }
  tokens.push_back(tokens_max);
  token_knots_ = thin_knots(tokens, kDenseTokens, kTokenRatio);
  sampled_knots_ = thin_knots(sampled, 1, kSampledRatio);
  decode_knots_ = thin_knots(decodes, kDenseDecodes, kDecodeRatio);
  context_knots_ = choose_context_knots(points);
  segments_.assign(context_knots_.begin(), context_knots_.end());
  head_ = token_knots_.size();
  decode_ = head_ + sampled_knots_.size() - 1;
  slope_ = decode_ + decode_knots_.size();
  ragged_ = slope_ + decode_knots_.size() * context_knots_.size();
  // One coefficient for all batches: small ones are drawn too rarely to have one of their own, and a spurious
  // one is multiplied by hundreds of tokens.
  pair_ = ragged_ + 1;
  chunk_ = pair_ + context_knots_.size();
  padding_ = chunk_ + 2;
  mixed_ = padding_ + 2;
  size_ = mixed_ + 4;
}

void FitBasis::add_body(std::vector<double>& row, double tokens) const {
  add_hat(row, 0, token_knots_, tokens, 1.0);
}

void FitBasis::add_decodes(std::vector<double>& row, const StepFeatures& features) const {
  const std::int64_t decodes = features.decode_count;
  const std::size_t segments = context_knots_.size();
  add_hat(row, decode_, decode_knots_, static_cast<double>(decodes), 1.0);
  const std::int64_t spread = decodes * features.decode_context_max - features.decode_context_sum;
  row[ragged_] += static_cast<double>(spread);
  const KnotPlace place = place_among(decode_knots_, static_cast<double>(decodes));
  for (std::size_t k = 0; k < segments; ++k) {
    const std::int64_t inside = features.decode_context_sum - decodes * segments_[k];
    if (inside <= 0) break;
    const std::int64_t width = segment_end(segments_, k) - segments_[k];
    const auto context_tokens = static_cast<double>(std::min(inside, decodes * width));
    row[slope_ + place.low * segments + k] += context_tokens * (1.0 - place.share);
    if (place.share > 0) row[slope_ + (place.low + 1) * segments + k] += context_tokens * place.share;
  }
}

void FitBasis::add_chunks(std::vector<double>& row, const StepFeatures& features) const {
  for (const ChunkFeatures& chunk : features.chunks) {
    row[chunk_] += 1.0;
    row[chunk_ + 1] += chunk.context;
    const std::int64_t end = std::int64_t{chunk.context} + chunk.tokens;
    for (std::size_t k = 0; k < segments_.size(); ++k)
      row[pair_ + k] +=
          static_cast<double>(pairs_in_segment(chunk.context, end, segments_[k], segment_end(segments_, k)));
  }
}

std::vector<double> FitBasis::row(const StepFeatures& features) const {
  std::vector<double> row(size_, 0.0);
  add_body(row, static_cast<double>(computed_tokens(features)));
  if (features.sampled_rows > 0) {
    const KnotPlace place = place_among(sampled_knots_, features.sampled_rows);
    if (place.low > 0) row[head_ + place.low - 1] += 1.0 - place.share;
    if (place.share > 0) row[head_ + place.low] += place.share;
  }
  if (features.decode_count > 0) add_decodes(row, features);
  add_chunks(row, features);
  row[padding_] += static_cast<double>(features.padded_tokens);
  row[padding_ + 1] += features.padded_rows;
  if (features.decode_count > 0 && !features.chunks.empty()) {
    row[mixed_] = 1.0;
    row[mixed_ + 1] = -1.0;
    row[mixed_ + 2] = features.decode_count;
    row[mixed_ + 3] = -features.decode_count;
  }
  return row;
}

FittedCost FitBasis::unpack(const std::vector<double>& x) const {
  const auto slice = [&](std::size_t begin, std::size_t end) {
    return std::vector<double>(x.begin() + static_cast<std::ptrdiff_t>(begin),
                               x.begin() + static_cast<std::ptrdiff_t>(end));
  };
  FittedCost fit;
  fit.token_knots = token_knots_;
  fit.body_ps = slice(0, head_);
  fit.sampled_knots = sampled_knots_;
  fit.head_ps = slice(head_, decode_);
  fit.head_ps.insert(fit.head_ps.begin(), 0.0);
  fit.decode_knots = decode_knots_;
  fit.decode_ps = slice(decode_, slope_);
  fit.context_knots = context_knots_;
  fit.decode_slope_ps = slice(slope_, ragged_);
  fit.ragged_ps.assign(decode_knots_.size(), x[ragged_]);
  fit.pair_ps = slice(pair_, chunk_);
  fit.chunk_ps = x[chunk_];
  fit.chunk_context_ps = x[chunk_ + 1];
  fit.padded_token_ps = x[padding_];
  fit.padded_row_ps = x[padding_ + 1];
  fit.mixed_ps = x[mixed_] - x[mixed_ + 1];
  fit.mixed_decode_ps = x[mixed_ + 2] - x[mixed_ + 3];
  return fit;
}

std::vector<std::pair<std::size_t, std::size_t>> FitBasis::neighbours() const {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  const std::size_t segments = context_knots_.size();
  for (std::size_t i = 0; i < decode_knots_.size(); ++i) {
    for (std::size_t k = 0; k < segments; ++k) {
      const std::size_t here = slope_ + i * segments + k;
      if (i + 1 < decode_knots_.size()) pairs.emplace_back(here, here + segments);
      if (k + 1 < segments) pairs.emplace_back(here, here + 1);
    }
  }
  for (std::size_t k = 0; k + 1 < segments; ++k) pairs.emplace_back(pair_ + k, pair_ + k + 1);
  return pairs;
}

std::vector<FitBasis::HeadAndBody> FitBasis::head_and_body() const {
  std::vector<HeadAndBody> result;
  for (std::size_t i = 1; i < sampled_knots_.size(); ++i) {
    result.push_back({head_ + i - 1, std::vector<double>(size_, 0.0)});
    add_body(result.back().body, sampled_knots_[i]);
  }
  return result;
}

}  // namespace foretoken

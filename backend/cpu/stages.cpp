#include "backend/cpu/stages.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace foretoken {

Stages<Cpu>::Stages(Runtime<Cpu>& runtime, const Weights<Cpu>& weights, const cpu::KvLayout& layout,
                    void* pool, std::int32_t positions_max)
    : runtime_(&runtime),
      weights_(&weights),
      kernels_(&cpu::kernels()),
      layout_(layout),
      pool_(pool),
      positions_max_(positions_max),
      input_type_(cpu::activation_type(kernels_->isa, weights.type)),
      query_type_(cpu::activation_type(kernels_->isa, layout.type)) {
  const int head_dim = weights.shape.head_dim;
  const auto table_bytes =
      static_cast<std::size_t>(positions_max) * static_cast<std::size_t>(head_dim / 2) * 4;
  cosine_ = runtime.allocate(table_bytes, "the rotary table");
  sine_ = runtime.allocate(table_bytes, "the rotary table");
  cpu::fill_rope_table(positions_max, head_dim, weights.shape.rope_theta, cosine_.as<float>().data(),
                       sine_.as<float>().data());
}

void Stages<Cpu>::reserve(int rows, int sampled) {
  const ModelShape& shape = weights_->shape;
  const int query_columns = shape.heads * shape.head_dim;
  Activations& b = buffers_;
  if (rows > b.rows_max) {
    // Twice the need at the least, so that growing row by row stays rare.
    b.rows_max = std::max(rows, 2 * b.rows_max);
    b.hidden_stride = cpu::activation_stride(shape.hidden);
    b.qkv_stride = cpu::activation_stride(query_columns + 2 * shape.kv_heads * shape.head_dim);
    b.query_stride = cpu::activation_stride(query_columns);
    b.ffn_stride = cpu::activation_stride(shape.ffn);
    const auto matrix = [&](std::int64_t stride, ElementType type) {
      return runtime_->allocate(static_cast<std::size_t>(b.rows_max * stride) * element_bytes(type),
                                "the activations of " + std::to_string(b.rows_max) + " rows");
    };
    b.residual = matrix(b.hidden_stride, ElementType::f32);
    b.normed = matrix(b.hidden_stride, input_type_);
    b.qkv = matrix(b.qkv_stride, ElementType::f32);
    b.query = matrix(b.query_stride, query_type_);
    b.attended = matrix(b.query_stride, input_type_);
    b.ffn = matrix(b.ffn_stride, input_type_);
  }
  if (sampled > sampled_max_) {
    sampled_max_ = std::max(sampled, 2 * sampled_max_);
    logits_ =
        runtime_->allocate(static_cast<std::size_t>(sampled_max_) * static_cast<std::size_t>(shape.vocab) * 4,
                           "the logits of " + std::to_string(sampled_max_) + " rows");
    next_tokens_.resize(static_cast<std::size_t>(sampled_max_));
  }
}

void Stages<Cpu>::prepare(const StepRows& rows) {
  FT_CHECK(rows.positions.size() == rows.tokens.size() && rows.kv_slots.size() == rows.tokens.size());
  FT_CHECK(rows.row_begin.back() == rows.rows() && rows.row_begin.size() == rows.context.size() + 1);
  reserve(rows.rows(), static_cast<int>(rows.sampled.size()));
  rows_ = &rows;
  batch_ = {rows.sequences(), rows.row_begin.data(), rows.context.data(), rows.page_begin.data(),
            rows.pages.data()};
  cpu::plan_attention(batch_, weights_->shape.heads, weights_->shape.kv_heads, runtime_->threads(), plan_);
}

std::span<const std::int32_t> Stages<Cpu>::sampled() const {
  return {next_tokens_.data(), rows_->sampled.size()};
}

std::span<const float> Stages<Cpu>::logits(int i) const {
  const auto vocab = static_cast<std::size_t>(weights_->shape.vocab);
  return logits_.as<float>().subspan(static_cast<std::size_t>(i) * vocab, vocab);
}

void Stages<Cpu>::embed(const cpu::Team& team) const {
  cpu::EmbedArgs args;
  args.rows = rows_->rows();
  args.dim = weights_->shape.hidden;
  args.tokens = rows_->tokens.data();
  args.table = weights_->embedding;
  args.table_type = weights_->type;
  args.out = buffers_.residual.as<float>().data();
  args.out_stride = buffers_.hidden_stride;
  kernels_->embed(args, team.share);
}

void Stages<Cpu>::norm(const float* weight, const std::int32_t* row_index, int rows, cpu::Share share) const {
  cpu::RmsNormArgs args;
  args.rows = rows;
  args.dim = weights_->shape.hidden;
  args.x = buffers_.residual.as<float>().data();
  args.x_stride = buffers_.hidden_stride;
  args.weight = weight;
  args.epsilon = static_cast<float>(weights_->shape.norm_eps);
  args.out = buffers_.normed.data();
  args.out_stride = buffers_.hidden_stride;
  args.out_type = input_type_;
  args.row_index = row_index;
  kernels_->rms_norm(args, share);
}

void Stages<Cpu>::spread_bias(const float* bias, cpu::Share share) const {
  const cpu::Range part = cpu::split(rows_->rows(), share);
  const int columns = weights_->layers.front().qkv.columns;
  float* qkv = buffers_.qkv.as<float>().data();
  for (std::int64_t row = part.begin; row < part.end; ++row)
    std::copy(bias, bias + columns, qkv + row * buffers_.qkv_stride);
}

void Stages<Cpu>::product(const cpu::PackedMatrix& matrix, const cpu::Buffer& x, std::int64_t x_stride,
                          const cpu::Buffer& y, std::int64_t y_stride, cpu::Epilogue epilogue, int rows,
                          cpu::Share share) const {
  cpu::ProductArgs args;
  args.weights = matrix;
  args.rows = rows;
  args.x = x.data();
  args.x_stride = x_stride;
  args.y = y.data();
  args.y_stride = y_stride;
  args.epilogue = epilogue;
  args.y_type = input_type_;
  args.features = epilogue == cpu::Epilogue::silu_mul ? weights_->shape.ffn : 0;
  kernels_->product(args, share);
}

void Stages<Cpu>::rope(const cpu::Team& team, int layer) const {
  cpu::RopeArgs args;
  args.rows = rows_->rows();
  args.query_heads = weights_->shape.heads;
  args.layout = layout_;
  args.layer = layer;
  args.qkv = buffers_.qkv.as<float>().data();
  args.qkv_stride = buffers_.qkv_stride;
  args.positions = rows_->positions.data();
  args.slots = rows_->kv_slots.data();
  args.cosine = cosine_.as<float>().data();
  args.sine = sine_.as<float>().data();
  args.pool = pool_;
  args.q_out = buffers_.query.data();
  args.q_stride = buffers_.query_stride;
  args.q_type = query_type_;
  kernels_->rope_and_write_kv(args, team.share);
}

void Stages<Cpu>::attention(const cpu::Team& team, int layer) const {
  cpu::AttentionArgs args;
  args.batch = batch_;
  args.query_heads = weights_->shape.heads;
  args.layout = layout_;
  args.layer = layer;
  args.pool = pool_;
  args.q = buffers_.query.data();
  args.q_stride = buffers_.query_stride;
  args.out = buffers_.attended.data();
  args.out_stride = buffers_.query_stride;
  args.out_type = input_type_;
  args.scale = 1.0F / std::sqrt(static_cast<float>(weights_->shape.head_dim));
  kernels_->attention(args, plan_, team.share);
}

void Stages<Cpu>::attention_norm(const cpu::Team& team, int layer) const {
  const LayerWeights<Cpu>& weights = layer_weights(layer);
  norm(weights.attention_norm, nullptr, rows(), team.share);
  // The bias goes in first and the product adds to it: no pass of its own, no barrier more.
  if (weights.qkv_bias != nullptr) spread_bias(weights.qkv_bias, team.share);
}

void Stages<Cpu>::qkv_product(const cpu::Team& team, int layer) const {
  const LayerWeights<Cpu>& weights = layer_weights(layer);
  const Activations& b = buffers_;
  product(weights.qkv, b.normed, b.hidden_stride, b.qkv, b.qkv_stride,
          weights.qkv_bias != nullptr ? cpu::Epilogue::add : cpu::Epilogue::store, rows(), team.share);
}

void Stages<Cpu>::output_product(const cpu::Team& team, int layer) const {
  const Activations& b = buffers_;
  product(layer_weights(layer).output, b.attended, b.query_stride, b.residual, b.hidden_stride,
          cpu::Epilogue::add, rows(), team.share);
}

void Stages<Cpu>::ffn_norm(const cpu::Team& team, int layer) const {
  norm(layer_weights(layer).ffn_norm, nullptr, rows(), team.share);
}

void Stages<Cpu>::gate_up_product(const cpu::Team& team, int layer) const {
  const Activations& b = buffers_;
  product(layer_weights(layer).gate_up, b.normed, b.hidden_stride, b.ffn, b.ffn_stride,
          cpu::Epilogue::silu_mul, rows(), team.share);
}

void Stages<Cpu>::down_product(const cpu::Team& team, int layer) const {
  const Activations& b = buffers_;
  product(layer_weights(layer).down, b.ffn, b.ffn_stride, b.residual, b.hidden_stride, cpu::Epilogue::add,
          rows(), team.share);
}

void Stages<Cpu>::head_norm(const cpu::Team& team) const {
  norm(weights_->final_norm, rows_->sampled.data(), sampled_rows(), team.share);
}

void Stages<Cpu>::head_product(const cpu::Team& team) const {
  product(weights_->head, buffers_.normed, buffers_.hidden_stride, logits_, weights_->shape.vocab,
          cpu::Epilogue::store, sampled_rows(), team.share);
}

void Stages<Cpu>::sample(const cpu::Team& team) {
  cpu::ArgmaxArgs args;
  args.rows = sampled_rows();
  args.dim = weights_->shape.vocab;
  args.logits = logits_.as<float>().data();
  args.stride = weights_->shape.vocab;
  args.tokens = next_tokens_.data();
  kernels_->argmax(args, team.share);
}

}  // namespace foretoken

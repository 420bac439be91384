#include "backend/cuda/stages.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cuda/attention_simple.hpp"
#include "kernels/cuda/embed.hpp"
#include "kernels/cuda/rms_norm.hpp"
#include "kernels/cuda/rope_kv.hpp"
#include "kernels/cuda/sample.hpp"
#include "kernels/cuda/silu_mul.hpp"
#include "sim/base/check.hpp"

namespace foretoken {
namespace {

/// `values` on the device.
CudaMemory uploaded(Runtime<Cuda>& runtime, const std::vector<float>& values, const std::string& purpose) {
  const std::size_t bytes = values.size() * sizeof(float);
  const CudaMemory pinned = runtime.allocate_host(bytes, purpose);
  CudaMemory memory = runtime.allocate(bytes, purpose);
  std::copy(values.begin(), values.end(), pinned.as<float>());
  runtime.copy(memory.data(), pinned.data(), bytes, runtime.steps());
  runtime.synchronize(runtime.steps());
  return memory;
}

template <class T>
void put(const std::vector<T>& values, T* target) {
  std::copy(values.begin(), values.end(), target);
}

/// Room for at least `needed`: what there is, or half as much again, so that growing stays rare.
template <class Number>
Number grown(Number has, Number needed) {
  return needed <= has ? has : std::max(needed, has + has / 2);
}

}  // namespace

Stages<Cuda>::Stages(Runtime<Cuda>& runtime, const Weights<Cuda>& weights, const cuda::KvLayout& layout,
                     void* pool, std::int32_t positions_max)
    : runtime_(&runtime),
      weights_(&weights),
      layout_(layout),
      pool_(pool),
      positions_max_(positions_max),
      products_(runtime, weights),
      activation_(weights.type),
      is_fast_(weights.type == ElementType::bf16 &&
               cuda::decode_attention_supports(layout, weights.shape.heads) &&
               cuda::prefill_attention_supports(layout, weights.shape.heads)) {
  const int head_dim = weights.shape.head_dim;
  const auto count = static_cast<std::size_t>(positions_max) * static_cast<std::size_t>(head_dim / 2);
  std::vector<float> cosine(count), sine(count);
  cpu::fill_rope_table(positions_max, head_dim, weights.shape.rope_theta, cosine.data(), sine.data());
  cosine_ = uploaded(runtime, cosine, "the rotary table");
  sine_ = uploaded(runtime, sine, "the rotary table");
}

void Stages<Cuda>::make_activations(int rows) {
  const ModelShape& shape = weights_->shape;
  const int query = shape.heads * shape.head_dim;
  Activations& b = buffers_;
  b.rows_max = rows;
  const auto matrix = [&](int columns, ElementType type) {
    return runtime_->allocate(
        static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * element_bytes(type),
        "the activations of " + std::to_string(rows) + " rows");
  };
  b.residual = matrix(shape.hidden, ElementType::f32);
  b.normed = matrix(shape.hidden, activation_);
  b.qkv = matrix(qkv_columns(shape), activation_);
  b.query = matrix(query, activation_);
  b.attended = matrix(query, activation_);
  b.gate_up = matrix(2 * shape.ffn, activation_);
  b.ffn = matrix(shape.ffn, activation_);
  b.delta = matrix(shape.hidden, activation_);
}

void Stages<Cuda>::make_outputs(int sampled) {
  const auto rows = static_cast<std::size_t>(sampled);
  const std::size_t row_bytes = static_cast<std::size_t>(weights_->shape.vocab) * sizeof(float);
  sampled_max_ = sampled;
  logits_ = runtime_->allocate(rows * row_bytes, "the logits of " + std::to_string(sampled) + " rows");
  tokens_ = runtime_->allocate(rows * sizeof(std::int32_t), "tokens");
  host_tokens_ = runtime_->allocate_host(rows * sizeof(std::int32_t), "tokens");
  host_logits_ = runtime_->allocate_host(row_bytes, "a row of logits");
}

bool Stages<Cuda>::reserve(int rows, int sampled, std::int64_t pages) {
  bool moved = false;
  if (rows > buffers_.rows_max) {
    make_activations(grown(buffers_.rows_max, rows));
    moved = true;
  }
  if (sampled > sampled_max_) {
    make_outputs(grown(sampled_max_, sampled));
    moved = true;
  }
  const StepCapacity has = step_ ? step_->capacity() : StepCapacity{};
  StepCapacity wanted;
  wanted.rows = grown(has.rows, std::max(rows, buffers_.rows_max));
  // Padding stands beside the sequences that it pads.
  wanted.sequences = wanted.rows;
  wanted.sampled = grown(has.sampled, std::max(sampled, sampled_max_));
  wanted.decode_items =
      cuda::decode_items_max(wanted.sequences, weights_->shape.kv_heads, runtime_->facts().multiprocessors);
  wanted.prefill_items = cuda::prefill_items_max(wanted.rows, wanted.sequences, group());
  wanted.pages = grown(has.pages, std::max<std::int64_t>(1, pages));
  if (wanted == has) return moved;
  step_.emplace(*runtime_, wanted);
  if (is_fast_)
    partial_ = runtime_->allocate(
        cuda::decode_partial_bytes(wanted.decode_items, weights_->shape.heads, weights_->shape.head_dim),
        "the parts of attention");
  return true;
}

void Stages<Cuda>::prepare(const StepRows& rows, int bucket) {
  FT_CHECK(rows.positions.size() == rows.tokens.size() && rows.kv_slots.size() == rows.tokens.size());
  FT_CHECK(rows.row_begin.back() == rows.rows() && rows.row_begin.size() == rows.context.size() + 1);
  FT_CHECK(bucket == 0 || rows.rows() <= bucket, rows.rows(), bucket);
  const int dead = bucket == 0 ? 0 : bucket - rows.rows();
  rows_ = rows.rows() + dead;
  sequences_ = rows.sequences() + dead;
  wanted_ = static_cast<int>(rows.sampled.size());
  sampled_ = wanted_ + dead;
  pages_ = static_cast<std::int64_t>(rows.pages.size());
  write_rows(rows, dead);
  if (is_fast_) plan_attention(rows);
}

void Stages<Cuda>::plan_attention(const StepRows& rows) {
  const StepArrays& host = step_->host();
  const int sequences = rows.sequences();
  const auto tokens = [&](int s) {
    return rows.row_begin[static_cast<std::size_t>(s) + 1] - rows.row_begin[static_cast<std::size_t>(s)];
  };
  // Chunks come first in a step; of what follows, everything that has one row decodes.
  first_decode_ = sequences;
  while (first_decode_ > 0 && tokens(first_decode_ - 1) == 1) --first_decode_;
  prefill_items_ =
      cuda::plan_prefill(rows.row_begin, rows.context, first_decode_, group(), host.prefill_items);
  const int decodes = sequences_ - first_decode_;
  decode_items_ =
      cuda::decode_items_max(decodes, weights_->shape.kv_heads, runtime_->facts().multiprocessors);
  *host.decode_item_count = cuda::plan_decode(
      std::span(host.context + first_decode_, static_cast<std::size_t>(decodes)), first_decode_,
      weights_->shape.kv_heads, runtime_->facts().multiprocessors, host.decode_items, host.decode_slot_begin);
}

void Stages<Cuda>::write_rows(const StepRows& rows, int dead) {
  const StepArrays& host = step_->host();
  put(rows.tokens, host.tokens);
  put(rows.positions, host.positions);
  put(rows.kv_slots, host.kv_slots);
  put(rows.row_begin, host.row_begin);
  put(rows.context, host.context);
  put(rows.page_begin, host.page_begin);
  put(rows.pages, host.pages);
  put(rows.sampled, host.sampled);
  for (int i = 0; i < dead; ++i) {
    const int row = rows.rows() + i;
    const int sequence = rows.sequences() + i;
    host.tokens[row] = -1;
    host.positions[row] = 0;
    host.kv_slots[row] = -1;
    host.row_begin[sequence + 1] = row + 1;
    host.context[sequence] = 0;
    host.page_begin[sequence + 1] = static_cast<std::int32_t>(pages_);
    host.sampled[wanted_ + i] = row;
  }
}

void Stages<Cuda>::send(cuda::Stream stream) const { step_->send(pages_, stream); }

void Stages<Cuda>::fetch(cuda::Stream stream) const {
  runtime_->copy(host_tokens_.data(), tokens_.data(),
                 static_cast<std::size_t>(sampled_) * sizeof(std::int32_t), stream);
}

std::span<const std::int32_t> Stages<Cuda>::sampled() const {
  return {host_tokens_.as<std::int32_t>(), static_cast<std::size_t>(wanted_)};
}

std::span<const float> Stages<Cuda>::logits(int i, cuda::Stream stream) const {
  const auto vocab = static_cast<std::size_t>(weights_->shape.vocab);
  runtime_->copy(host_logits_.data(), logits_.as<float>() + static_cast<std::size_t>(i) * vocab,
                 vocab * sizeof(float), stream);
  runtime_->synchronize(stream);
  return {host_logits_.as<float>(), vocab};
}

void Stages<Cuda>::embed(CudaQueue& queue) const {
  cuda::EmbedArgs args;
  args.rows = rows_;
  args.dim = weights_->shape.hidden;
  args.tokens = step_->device().tokens;
  args.table = weights_->embedding;
  args.table_type = weights_->type;
  args.out = buffers_.residual.as<float>();
  args.out_stride = args.dim;
  cuda::embed(args, queue.stream);
}

void Stages<Cuda>::norm(CudaQueue& queue, const float* weight, bool has_delta, const std::int32_t* row_index,
                        int rows) const {
  cuda::RmsNormArgs args;
  args.rows = rows;
  args.dim = weights_->shape.hidden;
  args.residual = buffers_.residual.as<float>();
  args.residual_stride = args.dim;
  args.delta = has_delta ? buffers_.delta.data() : nullptr;
  args.delta_stride = args.dim;
  args.weight = weight;
  args.epsilon = static_cast<float>(weights_->shape.norm_eps);
  args.out = buffers_.normed.data();
  args.out_stride = args.dim;
  args.activation = activation_;
  args.row_index = row_index;
  cuda::rms_norm(args, queue.stream);
}

void Stages<Cuda>::attention_norm(CudaQueue& queue, int layer) const {
  norm(queue, weights_->layers[static_cast<std::size_t>(layer)].attention_norm, layer > 0, nullptr, rows_);
}

void Stages<Cuda>::qkv_product(CudaQueue& queue, int layer) const {
  products_.run(weights_->layers[static_cast<std::size_t>(layer)].qkv, buffers_.normed, activation_,
                buffers_.qkv, activation_, rows_, queue.stream);
}

void Stages<Cuda>::rope(CudaQueue& queue, int layer) const {
  cuda::RopeKvArgs args;
  args.rows = rows_;
  args.query_heads = weights_->shape.heads;
  args.layout = layout_;
  args.layer = layer;
  args.qkv = buffers_.qkv.data();
  args.qkv_stride = qkv_columns(weights_->shape);
  args.bias = weights_->layers[static_cast<std::size_t>(layer)].qkv_bias;
  args.positions = step_->device().positions;
  args.slots = step_->device().kv_slots;
  args.cosine = cosine_.as<float>();
  args.sine = sine_.as<float>();
  args.pool = pool_;
  args.q_out = buffers_.query.data();
  args.q_stride = std::int64_t{weights_->shape.heads} * weights_->shape.head_dim;
  args.activation = activation_;
  cuda::rope_kv(args, queue.stream);
}

cuda::AttentionArgs Stages<Cuda>::attention_args(int layer) const {
  const StepArrays& arrays = step_->device();
  cuda::AttentionArgs args;
  args.batch = {sequences_, arrays.row_begin, arrays.context, arrays.page_begin, arrays.pages};
  args.rows = rows_;
  args.query_heads = weights_->shape.heads;
  args.layout = layout_;
  args.layer = layer;
  args.pool = pool_;
  args.q = buffers_.query.data();
  args.q_stride = std::int64_t{weights_->shape.heads} * weights_->shape.head_dim;
  args.out = buffers_.attended.data();
  args.out_stride = args.q_stride;
  args.activation = activation_;
  args.scale = 1.0F / std::sqrt(static_cast<float>(weights_->shape.head_dim));
  return args;
}

void Stages<Cuda>::attention(CudaQueue& queue, int layer) const {
  const cuda::AttentionArgs args = attention_args(layer);
  if (!is_fast_) return cuda::attention_simple(args, queue.stream);
  const StepArrays& arrays = step_->device();
  cuda::prefill_attention({args, arrays.prefill_items, prefill_items_}, queue.stream);
  cuda::DecodeAttentionArgs decode;
  decode.attention = args;
  decode.first = first_decode_;
  decode.sequences = sequences_ - first_decode_;
  decode.items = arrays.decode_items;
  decode.item_count = arrays.decode_item_count;
  decode.slot_begin = arrays.decode_slot_begin;
  decode.items_max = decode_items_;
  decode.partial = partial_.data();
  cuda::decode_attention(decode, queue.stream);
}

void Stages<Cuda>::output_product(CudaQueue& queue, int layer) const {
  products_.run(weights_->layers[static_cast<std::size_t>(layer)].output, buffers_.attended, activation_,
                buffers_.delta, activation_, rows_, queue.stream);
}

void Stages<Cuda>::ffn_norm(CudaQueue& queue, int layer) const {
  norm(queue, weights_->layers[static_cast<std::size_t>(layer)].ffn_norm, true, nullptr, rows_);
}

void Stages<Cuda>::gate_up_product(CudaQueue& queue, int layer) const {
  products_.run(weights_->layers[static_cast<std::size_t>(layer)].gate_up, buffers_.normed, activation_,
                buffers_.gate_up, activation_, rows_, queue.stream);
  cuda::SiluMulArgs args;
  args.rows = rows_;
  args.features = weights_->shape.ffn;
  args.gate_up = buffers_.gate_up.data();
  args.gate_up_stride = 2 * args.features;
  args.out = buffers_.ffn.data();
  args.out_stride = args.features;
  args.activation = activation_;
  cuda::silu_mul(args, queue.stream);
}

void Stages<Cuda>::down_product(CudaQueue& queue, int layer) const {
  products_.run(weights_->layers[static_cast<std::size_t>(layer)].down, buffers_.ffn, activation_,
                buffers_.delta, activation_, rows_, queue.stream);
}

void Stages<Cuda>::head_norm(CudaQueue& queue) const {
  norm(queue, weights_->final_norm, true, step_->device().sampled, sampled_);
}

void Stages<Cuda>::head_product(CudaQueue& queue) const {
  products_.run(weights_->head, buffers_.normed, activation_, logits_, ElementType::f32, sampled_,
                queue.stream);
}

void Stages<Cuda>::sample(CudaQueue& queue) const {
  cuda::SampleArgs args;
  args.rows = sampled_;
  args.vocabulary = weights_->shape.vocab;
  args.logits = logits_.as<float>();
  args.stride = args.vocabulary;
  args.tokens = tokens_.as<std::int32_t>();
  cuda::sample(args, queue.stream);
}

}  // namespace foretoken

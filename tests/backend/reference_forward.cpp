#include "tests/backend/reference_forward.hpp"

#include <cmath>

namespace foretoken::testing {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

double number(const void* data, ElementType type, std::size_t i) {
  return type == ElementType::f32 ? static_cast<double>(static_cast<const float*>(data)[i])
                                  : static_cast<double>(to_float(static_cast<const Bf16*>(data)[i]));
}

/// y = W x for each row; `column` maps an output to its column in the packed matrix.
template <class Column>
Rows product(const cpu::PackedMatrix& matrix, const Rows& x, int outputs, Column column) {
  Rows y(x.size(), Row(static_cast<std::size_t>(outputs)));
  std::vector<float> weights(static_cast<std::size_t>(matrix.depth));
  for (int n = 0; n < outputs; ++n) {
    cpu::unpack_column(matrix, column(n), weights.data());
    for (std::size_t row = 0; row < x.size(); ++row) {
      double sum = 0;
      for (std::size_t k = 0; k < weights.size(); ++k) sum += static_cast<double>(weights[k]) * x[row][k];
      y[row][static_cast<std::size_t>(n)] = sum;
    }
  }
  return y;
}

int same(int n) { return n; }
int gate(int n) { return n / 16 * 32 + n % 16; }
int up(int n) { return gate(n) + 16; }

Rows normed(const Rows& x, const float* weight, double epsilon) {
  Rows y = x;
  for (Row& row : y) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(row.size()) + epsilon);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * static_cast<double>(weight[i]);
  }
  return y;
}

void rotate(double* head, int dim, std::size_t position, double theta) {
  for (int i = 0; i < dim / 2; ++i) {
    const double angle = static_cast<double>(position) * std::pow(theta, -2.0 * i / dim);
    const double a = head[i];
    const double b = head[i + dim / 2];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + dim / 2] = b * std::cos(angle) + a * std::sin(angle);
  }
}

/// Causal attention of all heads; `qkv` holds rotated Q and K.
Rows attention(const ModelShape& shape, const Rows& qkv) {
  const auto dim = static_cast<std::size_t>(shape.head_dim);
  const auto heads = static_cast<std::size_t>(shape.heads);
  const auto kv_heads = static_cast<std::size_t>(shape.kv_heads);
  Rows out(qkv.size(), Row(heads * dim));
  for (std::size_t t = 0; t < qkv.size(); ++t)
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t key = (heads + head / (heads / kv_heads)) * dim;
      const std::size_t value = key + kv_heads * dim;
      Row weights(t + 1);
      double total = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t i = 0; i < dim; ++i) score += qkv[t][head * dim + i] * qkv[s][key + i];
        weights[s] = std::exp(score / std::sqrt(static_cast<double>(dim)));
        total += weights[s];
      }
      for (std::size_t s = 0; s <= t; ++s)
        for (std::size_t i = 0; i < dim; ++i)
          out[t][head * dim + i] += weights[s] / total * qkv[s][value + i];
    }
  return out;
}

void add(Rows& x, const Rows& y) {
  for (std::size_t row = 0; row < x.size(); ++row)
    for (std::size_t i = 0; i < x[row].size(); ++i) x[row][i] += y[row][i];
}

void run_layer(const ModelShape& shape, const LayerWeights<Cpu>& layer, Rows& x) {
  const int dim = shape.head_dim;
  Rows qkv = product(layer.qkv, normed(x, layer.attention_norm, shape.norm_eps), layer.qkv.columns, same);
  for (std::size_t t = 0; t < x.size(); ++t) {
    if (layer.qkv_bias != nullptr)
      for (std::size_t i = 0; i < qkv[t].size(); ++i) qkv[t][i] += static_cast<double>(layer.qkv_bias[i]);
    for (int head = 0; head < shape.heads + shape.kv_heads; ++head)
      rotate(qkv[t].data() + head * dim, dim, t, shape.rope_theta);
  }
  add(x, product(layer.output, attention(shape, qkv), shape.hidden, same));
  const Rows input = normed(x, layer.ffn_norm, shape.norm_eps);
  Rows gates = product(layer.gate_up, input, shape.ffn, gate);
  const Rows ups = product(layer.gate_up, input, shape.ffn, up);
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t i = 0; i < gates[t].size(); ++i)
      gates[t][i] = gates[t][i] / (1.0 + std::exp(-gates[t][i])) * ups[t][i];
  add(x, product(layer.down, gates, shape.hidden, same));
}

}  // namespace

std::vector<std::vector<double>> reference_logits(const Weights<Cpu>& weights,
                                                  std::span<const std::int32_t> tokens) {
  const ModelShape& shape = weights.shape;
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  Rows x(tokens.size(), Row(hidden));
  for (std::size_t t = 0; t < tokens.size(); ++t)
    for (std::size_t i = 0; i < hidden; ++i)
      x[t][i] = number(weights.embedding, weights.type, static_cast<std::size_t>(tokens[t]) * hidden + i);
  for (const LayerWeights<Cpu>& layer : weights.layers) run_layer(shape, layer, x);
  return product(weights.head, normed(x, weights.final_norm, shape.norm_eps), shape.vocab, same);
}

}  // namespace foretoken::testing

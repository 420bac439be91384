#include "kernels/reference/reference.hpp"

#include <algorithm>
#include <cmath>

namespace foretoken::reference {

Matrix product(const Matrix& x, const Matrix& w) {
  Matrix y(x.rows, w.rows);
  for (int m = 0; m < x.rows; ++m)
    for (int n = 0; n < w.rows; ++n)
      for (int k = 0; k < x.columns; ++k) y.at(m, n) += x.at(m, k) * w.at(n, k);
  return y;
}

double silu(double x) { return x / (1.0 + std::exp(-x)); }

Matrix silu_mul(const Matrix& gate, const Matrix& up) {
  Matrix y(gate.rows, gate.columns);
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = silu(gate.values[i]) * up.values[i];
  return y;
}

Matrix rms_norm(const Matrix& x, const std::vector<double>& weight, double epsilon) {
  Matrix y(x.rows, x.columns);
  for (int m = 0; m < x.rows; ++m) {
    double squares = 0;
    for (int k = 0; k < x.columns; ++k) squares += x.at(m, k) * x.at(m, k);
    const double root = std::sqrt(squares / x.columns + epsilon);
    for (int k = 0; k < x.columns; ++k) y.at(m, k) = x.at(m, k) / root * weight[std::size_t(k)];
  }
  return y;
}

Matrix rope(const Matrix& x, const std::vector<int>& positions, int head_dim, double theta) {
  Matrix y(x.rows, x.columns);
  const int half = head_dim / 2;
  for (int m = 0; m < x.rows; ++m)
    for (int head = 0; head < x.columns; head += head_dim)
      for (int i = 0; i < half; ++i) {
        const double angle = positions[std::size_t(m)] * std::pow(theta, -2.0 * i / head_dim);
        const double a = x.at(m, head + i), b = x.at(m, head + half + i);
        y.at(m, head + i) = a * std::cos(angle) - b * std::sin(angle);
        y.at(m, head + half + i) = b * std::cos(angle) + a * std::sin(angle);
      }
  return y;
}

Matrix attention(const Matrix& q, const Matrix& keys, const Matrix& values, int head_dim, double scale) {
  Matrix out(q.rows, q.columns);
  const int heads = q.columns / head_dim, kv_heads = keys.columns / head_dim;
  for (int row = 0; row < q.rows; ++row)
    for (int head = 0; head < heads; ++head) {
      const int visible = keys.rows - q.rows + row + 1;
      const int q_at = head * head_dim, kv_at = head / (heads / kv_heads) * head_dim;
      std::vector<double> weights(static_cast<std::size_t>(visible));
      for (int key = 0; key < visible; ++key) {
        double dot = 0;
        for (int d = 0; d < head_dim; ++d) dot += q.at(row, q_at + d) * keys.at(key, kv_at + d);
        weights[std::size_t(key)] = scale * dot;
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      for (int key = 0; key < visible; ++key)
        for (int d = 0; d < head_dim; ++d)
          out.at(row, q_at + d) += weights[std::size_t(key)] / total * values.at(key, kv_at + d);
    }
  return out;
}

std::vector<int> argmax(const Matrix& logits) {
  std::vector<int> best;
  for (int row = 0; row < logits.rows; ++row) {
    const auto begin = logits.values.begin() + std::ptrdiff_t(row) * logits.columns;
    best.push_back(static_cast<int>(std::max_element(begin, begin + logits.columns) - begin));
  }
  return best;
}

}  // namespace foretoken::reference

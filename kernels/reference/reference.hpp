#pragma once
#include <cstdint>
#include <vector>

/// Plain double-precision twins of the kernels, over dense arrays: the specification that the fast ones are
/// tested against. Loops only; no blocking, no threads, no cache layout.
namespace foretoken::reference {

/// A dense row-major matrix of doubles.
struct Matrix {
  /// Nothing yet.
  Matrix() : Matrix(0, 0) {}
  /// rows x columns zeros.
  Matrix(int rows_, int columns_)
      : rows(rows_), columns(columns_), values(std::size_t(rows_) * std::size_t(columns_)) {}
  int rows;
  int columns;
  std::vector<double> values;
  /// The element in row r, column c.
  double& at(int r, int c) { return values[std::size_t(r) * std::size_t(columns) + std::size_t(c)]; }
  /// The element in row r, column c.
  double at(int r, int c) const { return values[std::size_t(r) * std::size_t(columns) + std::size_t(c)]; }
};

/// x[M,K] w[N,K]^T.
Matrix product(const Matrix& x, const Matrix& w);

/// x / (1 + e^-x).
double silu(double x);

/// silu(gate) * up, element by element.
Matrix silu_mul(const Matrix& gate, const Matrix& up);

/// Each row divided by its root mean square (with epsilon under the root), times weight.
Matrix rms_norm(const Matrix& x, const std::vector<double>& weight, double epsilon);

/// Turns the heads of each row (columns = heads x head_dim) by the angles of its position: dims i and i +
/// head_dim / 2 by position * theta^(-2 i / head_dim).
Matrix rope(const Matrix& x, const std::vector<int>& positions, int head_dim, double theta);

/// Causal attention of one sequence: row i of q (heads x head_dim) sees keys 0 .. keys - rows + i. Keys and
/// values have kv_heads x head_dim columns; head h reads kv head h / (heads / kv_heads).
Matrix attention(const Matrix& q, const Matrix& keys, const Matrix& values, int head_dim, double scale);

/// The first index of the largest element of each row.
std::vector<int> argmax(const Matrix& logits);

}  // namespace foretoken::reference

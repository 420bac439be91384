#pragma once
#include <cstddef>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/memory.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace foretoken::bench {

/// One product of a step: N, K and what happens to the sums. For silu_mul, columns count gate and up.
struct ProductShape {
  int columns = 0;
  int depth = 0;
  cpu::Epilogue epilogue = cpu::Epilogue::store;
  /// The LM head runs on the rows that are sampled, not on all.
  bool on_sampled_rows = false;
};

/// The dimensions that decide a dense transformer's products; the defaults are the m100 shape.
struct TransformerShape {
  int hidden = 1024;
  int layers = 8;
  int query_heads = 16;
  int kv_heads = 4;
  int head_dim = 64;
  int ffn = 2816;
  int vocabulary = 8192;
};

/// The products of one whole step, in order: per layer QKV, output, gate and up, down; then the LM head.
std::vector<ProductShape> step_products(const TransformerShape& shape);

/// Products with weights of their own (one copy each, all different places, as a model has them) and room for
/// `rows_max` rows, to be timed again and again. Weights and activations are small random-looking numbers.
class ProductSet {
 public:
  /// `shapes` in the order they run, weights stored as `stored`, kernels of `isa`.
  ProductSet(std::vector<ProductShape> shapes, ElementType stored, int rows_max, cpu::Isa isa);

  /// Runs all products once in one parallel region, a barrier after each, and returns the seconds it took.
  double run(cpu::ThreadPool& pool, int rows, int sampled_rows);

  /// Bytes of all weights, padding included; each is read once a run.
  std::size_t weight_bytes() const { return weights_.size(); }
  /// Floating-point operations of one run.
  double flops(int rows, int sampled_rows) const;
  /// Seconds to read all weights once without computing anything: the bandwidth floor, at this very working
  /// set.
  double read_weights(cpu::ThreadPool& pool) const;
  /// ISA and storage type, for the arithmetic floor.
  cpu::Isa isa() const { return isa_; }
  /// How weights are stored.
  ElementType stored() const { return stored_; }

 private:
  std::vector<ProductShape> shapes_;
  ElementType stored_;
  cpu::Isa isa_;
  cpu::Buffer weights_;
  cpu::Buffer x_;
  cpu::Buffer y_;
};

/// One line of the products table.
struct ProductPoint {
  int rows = 0;
  double seconds = 0;
  double weight_bytes_per_s = 0;
  double flops_per_s = 0;
  /// max(weight bytes / read bandwidth of those very bytes, flops / peak), measured in the same rounds.
  double floor_seconds = 0;
  /// floor / measured.
  double share_of_floor = 0;
};

/// Times `set` at each of `rows` (sampled rows: all up to 32, else one, as a chunk of prefill has),
/// interleaved with the reading of its weights and the arithmetic peak, about `seconds` altogether.
std::vector<ProductPoint> measure_products(cpu::ThreadPool& pool, ProductSet& set,
                                           const std::vector<int>& rows, double seconds);

/// Seconds (10th percentile) of all products of one whole step of `shape` at `rows`, of which `sampled_rows`
/// go through the LM head: what "share of products" divides by.
double products_step_seconds(cpu::ThreadPool& pool, const TransformerShape& shape, ElementType stored,
                             int rows, int sampled_rows, double seconds);

}  // namespace foretoken::bench

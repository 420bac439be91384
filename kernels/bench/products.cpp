#include "kernels/bench/products.hpp"

#include <algorithm>

#include "kernels/bench/limits.hpp"
#include "kernels/bench/sampling.hpp"

namespace foretoken::bench {
namespace {

constexpr int kSampledRowsMax = 32;

/// Fills with numbers near 1/128 of both signs, never NaN or denormal, whose bits differ from word to word:
/// equal data would let the processor clock higher than real weights do.
void fill_weights(const cpu::Buffer& buffer, ElementType type) {
  std::uint32_t state = 1;
  const auto next = [&state] { return state = state * 1664525U + 1013904223U; };
  if (type == ElementType::bf16)
    for (Bf16& x : buffer.as<Bf16>())
      x.bits = static_cast<std::uint16_t>(0x3c00U | (next() >> 24) | (next() & 0x80000000U) >> 16);
  else
    for (float& x : buffer.as<float>()) x = (static_cast<float>(next() >> 16) - 32768.0F) / 4194304.0F;
}

int sampled(int rows) { return rows <= kSampledRowsMax ? rows : 1; }

}  // namespace

std::vector<ProductShape> step_products(const TransformerShape& shape) {
  using cpu::Epilogue;
  std::vector<ProductShape> products;
  const int query = shape.query_heads * shape.head_dim;
  for (int layer = 0; layer < shape.layers; ++layer) {
    products.push_back({query + 2 * shape.kv_heads * shape.head_dim, shape.hidden, Epilogue::store});
    products.push_back({shape.hidden, query, Epilogue::add});
    products.push_back({cpu::gate_up_columns(shape.ffn), shape.hidden, Epilogue::silu_mul});
    products.push_back({shape.hidden, shape.ffn, Epilogue::add});
  }
  products.push_back({shape.vocabulary, shape.hidden, Epilogue::store, true});
  return products;
}

ProductSet::ProductSet(std::vector<ProductShape> shapes, ElementType stored, int rows_max, cpu::Isa isa)
    : shapes_(std::move(shapes)), stored_(stored), isa_(isa) {
  std::size_t weight_bytes = 0, x_elements = 0, y_elements = 0;
  for (const ProductShape& shape : shapes_) {
    const int rows = shape.on_sampled_rows ? std::min(rows_max, kSampledRowsMax) : rows_max;
    weight_bytes += cpu::packed_bytes(stored, shape.columns, shape.depth);
    x_elements = std::max(x_elements, std::size_t(rows) * std::size_t(cpu::activation_stride(shape.depth)));
    y_elements = std::max(y_elements, std::size_t(rows) * std::size_t(shape.columns));
  }
  const ElementType activation = cpu::activation_type(isa, stored);
  weights_ = cpu::Buffer(weight_bytes);
  x_ = cpu::Buffer(x_elements * element_bytes(activation));
  y_ = cpu::Buffer(y_elements * sizeof(float));
  fill_weights(weights_, stored);
  fill_weights(x_, activation);
}

double ProductSet::run(cpu::ThreadPool& pool, int rows, int sampled_rows) {
  const cpu::Kernels& kernels = cpu::kernels(isa_);
  const double begin = seconds_now();
  pool.run([&](const cpu::Team& team) {
    std::byte* weights = weights_.data();
    for (const ProductShape& shape : shapes_) {
      cpu::ProductArgs args;
      args.weights = {weights, stored_, shape.columns, shape.depth};
      args.rows = shape.on_sampled_rows ? sampled_rows : rows;
      args.x = x_.data();
      args.x_stride = cpu::activation_stride(shape.depth);
      args.y = y_.data();
      args.y_stride = shape.columns;
      args.epilogue = shape.epilogue;
      args.y_type = cpu::activation_type(isa_, stored_);
      kernels.product(args, team.share);
      team.barrier();
      weights += cpu::packed_bytes(stored_, shape.columns, shape.depth);
    }
  });
  return seconds_now() - begin;
}

double ProductSet::flops(int rows, int sampled_rows) const {
  double total = 0;
  for (const ProductShape& shape : shapes_)
    total += 2.0 * shape.columns * shape.depth * (shape.on_sampled_rows ? sampled_rows : rows);
  return total;
}

double ProductSet::read_weights(cpu::ThreadPool& pool) const {
  return read_seconds(pool, weights_.data(), weights_.size(), 1);
}

std::vector<ProductPoint> measure_products(cpu::ThreadPool& pool, ProductSet& set,
                                           const std::vector<int>& rows, double seconds) {
  std::vector<Timed> timed;
  for (const int m : rows) {
    timed.push_back([&, m] { return set.run(pool, m, sampled(m)); });
    // A reading of each limit beside every point, so that the limits meet the same weather as often as the
    // products.
    timed.push_back([&] { return set.read_weights(pool); });
    timed.push_back([&] { return peak_sample(pool, set.isa(), set.stored()).seconds; });
  }
  const double peak_flops = peak_sample(pool, set.isa(), set.stored()).flops;
  const std::vector<double> times = interleaved_seconds(timed, 10, seconds);
  double read = times[1], peak = times[2];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    read = std::min(read, times[3 * i + 1]);
    peak = std::min(peak, times[3 * i + 2]);
  }
  std::vector<ProductPoint> points;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double flops = set.flops(rows[i], sampled(rows[i]));
    ProductPoint point;
    point.rows = rows[i];
    point.seconds = times[3 * i];
    point.weight_bytes_per_s = static_cast<double>(set.weight_bytes()) / point.seconds;
    point.flops_per_s = flops / point.seconds;
    point.floor_seconds = std::max(read, flops / peak_flops * peak);
    point.share_of_floor = point.floor_seconds / point.seconds;
    points.push_back(point);
  }
  return points;
}

double products_step_seconds(cpu::ThreadPool& pool, const TransformerShape& shape, ElementType stored,
                             int rows, int sampled_rows, double seconds) {
  ProductSet set(step_products(shape), stored, rows, cpu::active_isa());
  return interleaved_seconds({[&] { return set.run(pool, rows, sampled_rows); }}, 10, seconds).front();
}

}  // namespace foretoken::bench

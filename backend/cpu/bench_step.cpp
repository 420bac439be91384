#include "backend/cpu/bench_step.hpp"

#include <algorithm>
#include <chrono>

#include "backend/cpu/model.hpp"
#include "backend/cpu/stages.hpp"
#include "backend/transformer.hpp"
#include "kernels/bench/limits.hpp"
#include "kernels/bench/sampling.hpp"
#include "kernels/cpu/isa.hpp"
#include "models/cost.hpp"
#include "models/device.hpp"

namespace foretoken {
namespace {

constexpr int kBlockTokens = 16;

int blocks_for_tokens(int tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

/// The rows of a case, with blocks of its own for every sequence.
StepRows rows_of(const BenchCase& bench_case) {
  const bool decode = bench_case.batch > 0;
  const int context = decode ? bench_case.context : 0;
  const int tokens = decode ? 1 : bench_case.prompt;
  const int pages = blocks_for_tokens(context + tokens);
  StepRows rows;
  for (int sequence = 0; sequence < std::max(1, bench_case.batch); ++sequence) {
    for (int position = context; position < context + tokens; ++position) {
      rows.tokens.push_back((sequence * 31 + position * 7) % 251);
      rows.positions.push_back(position);
      rows.kv_slots.push_back(std::int64_t{sequence} * pages * kBlockTokens + position);
    }
    for (int page = 0; page < pages; ++page) rows.pages.push_back(sequence * pages + page);
    rows.close_sequence(context + tokens);
    rows.sampled.push_back(rows.rows() - 1);
  }
  return rows;
}

StepFeatures features_of(const BenchCase& bench_case, ChunkFeatures& chunk) {
  StepFeatures features;
  features.sampled_rows = std::max(1, bench_case.batch);
  if (bench_case.batch == 0) {
    chunk = {bench_case.prompt, 0};
    features.chunks = {&chunk, 1};
    return features;
  }
  features.decode_count = bench_case.batch;
  features.decode_context_sum = std::int64_t{bench_case.batch} * bench_case.context;
  features.decode_context_min = bench_case.context;
  features.decode_context_max = bench_case.context;
  return features;
}

template <class Work>
std::int64_t time_ps(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  return std::chrono::duration_cast<std::chrono::duration<std::int64_t, std::pico>>(elapsed).count();
}

/// The value that `share` of the sorted values lie below.
std::int64_t percentile(std::vector<std::int64_t>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// The two limits that no step can beat, read on the team that runs the steps.
class Limits {
 public:
  Limits(Runtime<Cpu>& runtime, const Weights<Cpu>& weights)
      : pool_(runtime.pool()), memory_(weights.memory.front()), type_(weights.type) {}

  void read() {
    reads_.push_back(bench::read_seconds(pool_, memory_.data(), memory_.size(), 1));
    const bench::PeakSample peak = bench::peak_sample(pool_, cpu::active_isa(), type_);
    seconds_per_flop_.push_back(peak.seconds / peak.flops);
  }
  /// Of what was read since the last call.
  DeviceSheet sheet() {
    DeviceSheet sheet;
    sheet.bandwidth_bytes_per_s = static_cast<double>(memory_.size()) / bench::tenth_percentile(reads_);
    sheet.peak_flops_per_s.assign(static_cast<std::size_t>(Precision::int4) + 1,
                                  1 / bench::tenth_percentile(seconds_per_flop_));
    reads_.clear();
    seconds_per_flop_.clear();
    return sheet;
  }

 private:
  cpu::ThreadPool& pool_;
  const cpu::Buffer& memory_;
  ElementType type_;
  std::vector<double> reads_;
  std::vector<double> seconds_per_flop_;
};

BenchPoint time_case(const BenchCase& bench_case, Transformer<Cpu>& transformer, Runtime<Cpu>& runtime,
                     Limits& limits, double seconds) {
  const StepRows rows = rows_of(bench_case);
  const auto step = [&] {
    transformer.stages().prepare(rows);
    const auto work = [&](const cpu::Team& team) { transformer.forward(team); };
    runtime.run(work);
  };
  const auto products = [&] {
    const auto work = [&](const cpu::Team& team) { transformer.forward_products(team); };
    runtime.run(work);
  };
  std::vector<std::int64_t> step_times;
  std::vector<std::int64_t> product_times;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int pass = 0; pass < 6 || std::chrono::steady_clock::now() < end; ++pass) {
    const std::int64_t step_time = time_ps(step);
    const std::int64_t product_time = time_ps(products);
    if (pass == 0) continue;  // touches buffers for the first time
    limits.read();
    step_times.push_back(step_time);
    product_times.push_back(product_time);
  }
  BenchPoint point;
  point.phase = bench_case.batch > 0 ? "decode" : "prefill";
  point.batch = std::max(1, bench_case.batch);
  point.context = bench_case.batch > 0 ? bench_case.context : 0;
  point.steps = static_cast<int>(step_times.size());
  point.step_p10_ps = percentile(step_times, 0.1);
  point.step_median_ps = percentile(step_times, 0.5);
  point.products_p10_ps = percentile(product_times, 0.1);
  point.products_median_ps = percentile(product_times, 0.5);
  const double step_seconds = static_cast<double>(point.step_p10_ps) * 1e-12;
  point.tokens_per_second = static_cast<double>(rows.rows()) / step_seconds;
  point.share_of_products =
      static_cast<double>(point.products_p10_ps) / static_cast<double>(point.step_p10_ps);
  return point;
}

}  // namespace

std::vector<BenchCase> standard_bench_cases() {
  return {{1, 128, 0}, {8, 128, 0}, {32, 128, 0}, {0, 0, 512}};
}

std::vector<BenchPoint> bench_steps(const ModelShape& shape, Runtime<Cpu>& runtime,
                                    const std::vector<BenchCase>& cases, const BenchStepOptions& options,
                                    const std::function<void(std::string_view)>& progress) {
  int blocks = 1;
  int positions = 1;
  for (const BenchCase& bench_case : cases) {
    const int tokens = bench_case.batch > 0 ? bench_case.context + 1 : bench_case.prompt;
    blocks = std::max(blocks, std::max(1, bench_case.batch) * blocks_for_tokens(tokens));
    positions = std::max(positions, tokens);
  }
  const Weights<Cpu> weights = random_weights(shape, options.type, options.seed, runtime);
  const cpu::KvLayout layout = kv_layout(shape, options.type, kBlockTokens);
  const cpu::Buffer pool =
      runtime.allocate(static_cast<std::size_t>(blocks) * layout.block_bytes(), "the KV pool");
  Transformer<Cpu> transformer(runtime, weights, layout, pool.data(), positions);
  const Precision precision = options.type == ElementType::bf16 ? Precision::bf16 : Precision::f32;
  Limits limits(runtime, weights);
  std::vector<BenchPoint> points;
  for (const BenchCase& bench_case : cases) {
    if (progress)
      progress(bench_case.batch > 0 ? "decode of " + std::to_string(bench_case.batch)
                                    : "prefill of " + std::to_string(bench_case.prompt));
    points.push_back(time_case(bench_case, transformer, runtime, limits, options.seconds_per_case));
    ChunkFeatures chunk;
    const HardwareFloor floor = make_floor(shape, precision, precision, limits.sheet());
    points.back().floor_ps = floor_ps(floor, features_of(bench_case, chunk));
    points.back().share_of_floor =
        static_cast<double>(points.back().floor_ps) / static_cast<double>(points.back().step_p10_ps);
  }
  return points;
}

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/runtime.hpp"
#include "kernels/element.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// One kind of step to be timed.
struct BenchCase {
  /// Sequences that decode one token each, or 0 for a prefill.
  int batch = 0;
  /// Tokens cached before the step; of a prefill, 0.
  int context = 128;
  /// Tokens of the prefill.
  int prompt = 0;
};

/// The cases by which the project is judged: decodes of 1, 8 and 32 sequences at context 128, and a prefill
/// of 512.
std::vector<BenchCase> standard_bench_cases();

/// How to time steps.
struct BenchStepOptions {
  ElementType type = ElementType::bf16;
  std::uint64_t seed = 1;
  /// Time spent on each case.
  double seconds_per_case = 2.0;
};

/// What became of a case. Shares compare the 10th percentile of times with the 10th percentile, from
/// alternating runs; so does the floor, from readings of the weights and of the arithmetic peak in between.
struct BenchPoint {
  /// "decode" or "prefill".
  std::string phase;
  int batch = 0;
  int context = 0;
  /// New tokens of the step, over the 10th percentile of its times.
  double tokens_per_second = 0;
  /// Time of the matrix products alone over time of the step: 1 when everything else is free.
  double share_of_products = 0;
  /// Least time that the machine's limits allow over time of the step.
  double share_of_floor = 0;
  /// 10th percentile and median of the step, and of its products alone.
  std::int64_t step_p10_ps = 0;
  std::int64_t step_median_ps = 0;
  std::int64_t products_p10_ps = 0;
  std::int64_t products_median_ps = 0;
  std::int64_t floor_ps = 0;
  /// Steps timed.
  int steps = 0;
};

/// Times whole steps and their products alone, alternating, on random weights. `progress` is told each case's
/// name before it begins; may be empty.
std::vector<BenchPoint> bench_steps(const ModelShape& shape, Runtime<Cpu>& runtime,
                                    const std::vector<BenchCase>& cases, const BenchStepOptions& options,
                                    const std::function<void(std::string_view)>& progress = {});

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/base/json.hpp"
#include "sim/scenario.hpp"

namespace foretoken {

/// How the simulator is timed.
struct BenchSimOptions {
  std::string preset = "vllm-v1";
  std::int64_t requests = 300'000;  ///< In each timed run.
  std::int64_t repeats = 5;         ///< Timed runs; figures are medians.
  double rate_share = 0.95;         ///< Of the capacity, which is searched for first.
  std::uint64_t seed = 1;
};

/// What was measured, on one core.
struct BenchSimResult {
  double capacity_per_s = 0;
  double rate_per_s = 0;
  double requests_per_cpu_second = 0;
  double steps_per_cpu_second = 0;
  double mean_batch = 0;  ///< Tokens emitted per step.
  double steps_per_request = 0;
  double preempted_share = 0;  ///< Requests preempted at least once.
  double preemptions_per_request = 0;
  double ns_per_decode_step_at_batch_256 = 0;  ///< One by one, all metrics on.
  std::int64_t peak_rss_bytes = 0;             ///< Of the whole process.
};

/// The system that is simulated: 256 sequences, a budget of 2,048 tokens, prompts and answers with the
/// moments of a production chat service, a stated cost of 6 ms and 20 us per token and 40 ns per context
/// token, and a KV pool that is just too small.
Scenario bench_sim_scenario(const BenchSimOptions& options);
/// Times it. `progress` is told what comes next; may be empty.
BenchSimResult bench_sim(const BenchSimOptions& options,
                         const std::function<void(std::string_view)>& progress = {});
/// The result under the keys that others compare by.
Json bench_sim_json(const BenchSimOptions& options, const BenchSimResult& result);

}  // namespace foretoken

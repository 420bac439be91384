#include "backend/cuda/limits.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "kernels/cuda/read_memory.hpp"
#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"
#include "models/shape.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kReadBytes = std::size_t{2} << 30;
constexpr int kProductSize = 8192;

/// 10th percentile of the seconds that `work` takes on the device, repeated until the time is over.
double tenth_percentile(Runtime<Cuda>& runtime, double seconds, const std::function<void()>& work) {
  const CudaHandle begin = runtime.make_event();
  const CudaHandle end = runtime.make_event();
  std::vector<double> times;
  const auto stop = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (int i = 0; i < 12 || std::chrono::steady_clock::now() < stop; ++i) {
    runtime.record(begin, runtime.steps());
    work();
    runtime.record(end, runtime.steps());
    runtime.synchronize(end);
    if (i >= 2) times.push_back(runtime.seconds_between(begin, end));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

/// Random bits that are finite bf16 numbers of about one: power, and with it the clock, depends on the data.
void fill_random(Runtime<Cuda>& runtime, const CudaMemory& target) {
  const CudaMemory host = runtime.allocate_host(target.size(), "random numbers");
  std::uint64_t state = 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 0; i < target.size() / 2; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto uniform = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 4.6e-10F;
    host.as<Bf16>()[i] = to_bf16(uniform);
  }
  runtime.copy(target.data(), host.data(), target.size(), runtime.steps());
  runtime.synchronize(runtime.steps());
}

double read_bandwidth(Runtime<Cuda>& runtime, double seconds) {
  const CudaMemory memory = runtime.allocate(kReadBytes, "the read bandwidth");
  const CudaMemory sum = runtime.allocate(16, "the read bandwidth");
  runtime.zero(memory.data(), memory.size(), runtime.steps());
  const int blocks = 4 * runtime.facts().multiprocessors;
  const double time = tenth_percentile(runtime, seconds, [&] {
    cuda::read_memory(memory.data(), static_cast<std::int64_t>(kReadBytes), blocks, sum.as<std::uint32_t>(),
                      runtime.steps());
  });
  return static_cast<double>(kReadBytes) / time;
}

double product_rate(Runtime<Cuda>& runtime, double seconds) {
  const auto count = static_cast<std::size_t>(kProductSize) * kProductSize;
  const CudaMemory x = runtime.allocate(2 * count, "the product rate");
  const CudaMemory weights = runtime.allocate(2 * count, "the product rate");
  const CudaMemory y = runtime.allocate(2 * count, "the product rate");
  fill_random(runtime, x);
  fill_random(runtime, weights);
  cuda::LibraryProductArgs args;
  args.rows = args.columns = args.depth = kProductSize;
  args.x = x.data();
  args.x_stride = kProductSize;
  args.weights = weights.data();
  args.y = y.data();
  args.y_stride = kProductSize;
  runtime.tune(args, runtime.steps());
  const double time = tenth_percentile(runtime, seconds, [&] { runtime.product(args, runtime.steps()); });
  return 2.0 * kProductSize * static_cast<double>(count) / time;
}

}  // namespace

DeviceSheet measure_cuda_limits(Runtime<Cuda>& runtime, double seconds) {
  DeviceSheet sheet;
  sheet.name = runtime.facts().name;
  sheet.source = "measured by foretoken on the device";
  sheet.memory_bytes = static_cast<double>(runtime.facts().memory_bytes);
  sheet.peak_flops_per_s.assign(static_cast<std::size_t>(Precision::int4) + 1, 0.0);
  if (!runtime.facts().has_clock) return sheet;
  sheet.bandwidth_bytes_per_s = read_bandwidth(runtime, 0.5 * seconds);
  sheet.peak_flops_per_s[static_cast<std::size_t>(Precision::bf16)] = product_rate(runtime, 0.5 * seconds);
  return sheet;
}

}  // namespace foretoken

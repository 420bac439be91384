#include "kernels/bench/limits.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "kernels/bench/peaks.hpp"
#include "kernels/bench/sampling.hpp"
#include "kernels/cpu/memory.hpp"

namespace foretoken::bench {
namespace {

/// Where the loops' results go, so that they are not dropped.
std::atomic<float> kept{0.0F};

constexpr std::size_t kReadUnit = 256;

/// A peak sample does this much per member: about half a millisecond, long against the fork.
constexpr double kPeakFlops = 1e8;

/// A bandwidth reading moves at least this much, so that forks and the clock do not count.
constexpr std::size_t kReadBytesMin = std::size_t{16} << 20;

cpu::Range bytes_of(std::size_t bytes, cpu::Share share) {
  const cpu::Range units = cpu::split(static_cast<std::int64_t>(bytes / kReadUnit), share);
  return {units.begin * std::int64_t{kReadUnit}, units.end * std::int64_t{kReadUnit}};
}

std::vector<std::size_t> working_sets() {
  std::vector<std::size_t> sizes;
  for (std::size_t bytes = std::size_t{32} << 10; bytes <= kLimitsBytes; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

}  // namespace

double read_seconds(cpu::ThreadPool& pool, const std::byte* data, std::size_t bytes, int passes) {
  const double begin = seconds_now();
  pool.run([&](const cpu::Team& team) {
    const cpu::Range mine = bytes_of(bytes, team.share);
    for (int pass = 0; pass < passes; ++pass)
      kept.store(read_all(data + mine.begin, static_cast<std::size_t>(mine.end - mine.begin)),
                 std::memory_order_relaxed);
  });
  return seconds_now() - begin;
}

double copy_seconds(cpu::ThreadPool& pool, const std::byte* source, std::byte* target, std::size_t bytes) {
  const double begin = seconds_now();
  pool.run([&](const cpu::Team& team) {
    const cpu::Range mine = bytes_of(bytes, team.share);
    std::memcpy(target + mine.begin, source + mine.begin, static_cast<std::size_t>(mine.end - mine.begin));
  });
  return seconds_now() - begin;
}

PeakSample peak_sample(cpu::ThreadPool& pool, cpu::Isa isa, ElementType stored) {
  const PeakLoop loop = peak_loop(isa, stored);
  const long rounds = static_cast<long>(kPeakFlops / loop.flops_per_round);
  const double begin = seconds_now();
  pool.run([&](const cpu::Team&) { kept.store(loop.run(rounds), std::memory_order_relaxed); });
  return {seconds_now() - begin, loop.flops_per_round * static_cast<double>(rounds) * pool.size()};
}

MachineLimits measure_limits(int threads_max, double seconds, int threads_min, int rounds_min) {
  MachineLimits limits;
  const std::vector<std::size_t> sizes = working_sets();
  const cpu::Buffer memory(sizes.back());
  std::memset(memory.data(), 0, memory.size());
  const std::size_t copied = memory.size() / 2;
  const double share = seconds / (threads_max - threads_min + 1);
  for (int threads = threads_min; threads <= threads_max; ++threads) {
    cpu::ThreadPool pool(threads);
    std::vector<Timed> timed;
    std::vector<double> amounts;
    for (const std::size_t bytes : sizes) {
      const int passes = static_cast<int>(std::max<std::size_t>(1, kReadBytesMin / bytes));
      timed.push_back([&, bytes, passes] { return read_seconds(pool, memory.data(), bytes, passes); });
      amounts.push_back(static_cast<double>(bytes) * passes);
    }
    timed.push_back([&] { return copy_seconds(pool, memory.data(), memory.data() + copied, copied); });
    amounts.push_back(static_cast<double>(copied));
    std::vector<PeakPoint> peaks;
    for (const cpu::Isa isa : cpu::available_isas())
      for (const ElementType stored : {ElementType::f32, ElementType::bf16}) {
        if (stored == ElementType::bf16 && cpu::activation_type(isa, stored) != ElementType::bf16) continue;
        timed.push_back([&pool, isa, stored] { return peak_sample(pool, isa, stored).seconds; });
        amounts.push_back(peak_sample(pool, isa, stored).flops);
        peaks.push_back({isa, stored, threads, 0});
      }
    const std::vector<double> times = interleaved_seconds(timed, rounds_min, share);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      limits.read.push_back({sizes[i], threads, amounts[i] / times[i]});
    limits.copy.push_back({copied, threads, amounts[sizes.size()] / times[sizes.size()]});
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      peaks[i].flops_per_s = amounts[sizes.size() + 1 + i] / times[sizes.size() + 1 + i];
      limits.peaks.push_back(peaks[i]);
    }
  }
  return limits;
}

double read_bandwidth(const MachineLimits& limits, std::size_t bytes, int threads) {
  const BandwidthPoint* below = nullptr;
  for (const BandwidthPoint& point : limits.read) {
    if (point.threads != threads) continue;
    if (point.bytes >= bytes) {
      if (below == nullptr || point.bytes == bytes) return point.bytes_per_s;
      const double part = std::log2(static_cast<double>(bytes) / static_cast<double>(below->bytes)) /
                          std::log2(static_cast<double>(point.bytes) / static_cast<double>(below->bytes));
      return below->bytes_per_s + part * (point.bytes_per_s - below->bytes_per_s);
    }
    below = &point;
  }
  return below == nullptr ? 0.0 : below->bytes_per_s;
}

double peak_flops(const MachineLimits& limits, cpu::Isa isa, ElementType stored, int threads) {
  const ElementType measured = cpu::activation_type(isa, stored);
  for (const PeakPoint& point : limits.peaks)
    if (point.isa == isa && point.stored == measured && point.threads == threads) return point.flops_per_s;
  return 0.0;
}

}  // namespace foretoken::bench

#include <iostream>
#include <optional>
#include <utility>

#include "sim/workload/trace_summary.hpp"
#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Detail::Approx;

namespace {

/// Reads a shared trace whole; nothing, with a word about it, where it is absent.
std::optional<std::pair<TraceInfo, TraceSummary>> whole(const std::string& name,
                                                        const TraceReadOptions& options = {}) {
  const auto path = shared_trace(name);
  if (!path) {
    std::cout << "skipped: " << name << " is not here\n";
    return std::nullopt;
  }
  TraceReader reader(*path, options);
  TraceSummary summary;
  TraceRecord record;
  while (reader.next(record)) summary.add(record);
  return std::pair(reader.info(), summary);
}

}  // namespace

TEST_CASE("the Azure 2023 conversation trace reads whole, with its published figures", "[golden]") {
  const auto found = whole("azure-2023/AzureLLMInferenceTrace_conv.csv");
  if (!found) return;
  const auto& [info, summary] = *found;
  CHECK(info.format == TraceFormat::azure);
  CHECK(summary.requests() == 19'366);
  CHECK(static_cast<double>(summary.span_ns()) * 1e-9 == Approx(3501.7219370).margin(1e-7));
  CHECK(summary.rate_per_s() == Approx(5.53).margin(0.005));
  CHECK(summary.arrival_cv() == Approx(1.09).margin(0.005));
  CHECK(summary.peak_per_s() == 16);
  CHECK(summary.input().percentile(50) == 1020);
  CHECK(summary.input().percentile(99) == Approx(4142).margin(1));
  CHECK(summary.input().max() == 14'050);
  CHECK(summary.output().percentile(50) == 129);
  CHECK(summary.output().percentile(99) == Approx(601).margin(1));
  CHECK(summary.output().max() == 1000);
  CHECK(summary.input().mean() == Approx(1154.697).margin(1e-3));
  CHECK(summary.output().mean() == Approx(211.126).margin(1e-3));
}

TEST_CASE("the Azure 2023 code trace reads whole, bursts and all", "[golden]") {
  const auto found = whole("azure-2023/AzureLLMInferenceTrace_code.csv");
  if (!found) return;
  const auto& [info, summary] = *found;
  CHECK(summary.requests() == 8'819);
  CHECK(summary.rate_per_s() == Approx(2.57).margin(0.005));
  CHECK(summary.arrival_cv() == Approx(13.2).margin(0.06));
  CHECK(summary.dispersion() == Approx(13.2).margin(0.06));
  CHECK(summary.peak_per_s() == 67);
  CHECK(summary.idle_share() == Approx(0.73).margin(0.005));
  CHECK(summary.input().percentile(50) == 1469);
  CHECK(summary.input().percentile(90) == Approx(5187.6).margin(1e-6));
  CHECK(summary.input().max() == 7437);
  CHECK(summary.output().percentile(50) == 13);
  CHECK(summary.output().max() == 1899);
}

TEST_CASE("the Mooncake conversation trace reads whole from gzip, in ticks of three seconds", "[golden]") {
  const auto found = whole("mooncake/conversation_trace.jsonl.gz");
  if (!found) return;
  const auto& [info, summary] = *found;
  CHECK(info.format == TraceFormat::mooncake);
  CHECK(info.block_tokens == 512);
  CHECK(info.counts.distinct_times == 1'180);
  CHECK(summary.requests() == 12'031);
  CHECK(summary.rate_per_s() == Approx(3.40).margin(0.005));
  CHECK(summary.arrival_cv() == Approx(3.03).margin(0.005));
  CHECK(summary.peak_per_s() == 28);
  CHECK(summary.input().mean() == Approx(12'035).margin(0.5));
  CHECK(summary.input().percentile(50) == 6'909);
  CHECK(summary.input().percentile(99) == Approx(85'401).margin(1));
  CHECK(summary.input().max() == 126'195);
  CHECK(summary.output().percentile(50) == 350);
  CHECK(summary.output().percentile(99) == Approx(1118.5).margin(1e-6));
  CHECK(summary.prefix_reuse() == Approx(0.366).margin(0.0005));
}

TEST_CASE("spreading the ticks of Mooncake leaves arrivals like those of a Poisson process", "[golden]") {
  TraceReadOptions options;
  options.spread_ties = SpreadTies::uniform;
  const auto found = whole("mooncake/conversation_trace.jsonl.gz", options);
  if (!found) return;
  const auto& [info, summary] = *found;
  CHECK(info.counts.distinct_times == 1'180);
  CHECK(summary.requests() == 12'031);
  CHECK(summary.arrival_cv() > 0.9);
  CHECK(summary.arrival_cv() < 1.3);
  CHECK(summary.prefix_reuse() == Approx(0.366).margin(0.0005));
}

TEST_CASE("the Mooncake synthetic trace reads whole", "[golden]") {
  const auto found = whole("mooncake/synthetic_trace.jsonl.gz");
  if (!found) return;
  const auto& [info, summary] = *found;
  CHECK(summary.requests() == 3'993);
  CHECK(summary.rate_per_s() == Approx(3.91).margin(0.005));
  CHECK(summary.input().percentile(50) == 11'587);
  CHECK(summary.input().max() == 191'378);
  CHECK(summary.prefix_reuse() == Approx(0.640).margin(0.0005));
}

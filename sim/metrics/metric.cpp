#include "sim/metrics/metric.hpp"

#include "sim/base/text.hpp"

namespace foretoken {
namespace {

struct Definition {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<Definition, kMetrics> kDefinitions{{
    {"ttft",
     "Time to first token: from the intended arrival to the delivery of the first token. An engine that "
     "delivers at the end of a request or of a batch has its ttft there. Not defined for answers of 0 "
     "tokens."},
    {"tpot",
     "Time per output token of one request: (last token - first token) / (tokens - 1), tokens as the engine "
     "makes them. Answers of 0 and 1 tokens have none: they are excluded and counted."},
    {"ntpot", "Normalised time per output token: e2e / tokens. Not defined for answers of 0 tokens."},
    {"e2e", "End to end: from the intended arrival to the delivery of the last token."},
    {"queue_time",
     "From the arrival to the begin of the first step that computes something for the request."},
    {"preempted_time", "From each preemption to the begin of the next step that computes for the request."},
    {"stall_max", "Greatest gap between two tokens of one request, preemptions included."},
    {"prefill_time", "Time of the steps that computed the prompt, or computed again what a preemption lost."},
    {"decode_time", "Time of the steps in which the request got its tokens, the first one aside."},
    {"stalled_time",
     "Resident without getting anything: a prompt of others runs alone, the budget is used up, blocks move. "
     "queue_time + prefill_time + decode_time + preempted_time + stalled_time = end - arrival, exactly."},
    {"gap",
     "Time between two tokens, pooled over all tokens of all requests: long answers weigh more. Kept in a "
     "histogram with a relative error of at most 0.4 %."},
}};

constexpr std::size_t kColumns = 100;
constexpr std::array<std::string_view, kStatistics> kStatisticNames{"mean", "p50",   "p90", "p95",
                                                                    "p99",  "p99.9", "max"};

}  // namespace

std::string_view metric_name(Metric metric) { return kDefinitions[index(metric)].name; }

std::optional<Metric> find_metric(std::string_view name) {
  for (std::size_t m = 0; m < kMetrics; ++m)
    if (kDefinitions[m].name == name) return static_cast<Metric>(m);
  return std::nullopt;
}

std::string_view statistic_name(Statistic statistic) {
  return kStatisticNames[static_cast<std::size_t>(statistic)];
}

std::optional<double> statistic_quantile(Statistic statistic) {
  switch (statistic) {
    case Statistic::p50: return 0.5;
    case Statistic::p90: return 0.9;
    case Statistic::p95: return 0.95;
    case Statistic::p99: return 0.99;
    case Statistic::p999: return 0.999;
    case Statistic::max: return 1.0;
    case Statistic::mean:
    case Statistic::count_: break;
  }
  return std::nullopt;
}

std::int64_t samples_needed(Statistic statistic) {
  if (statistic == Statistic::p99) return 1000;
  if (statistic == Statistic::p999) return 10000;
  return 1;
}

std::string metric_definitions() {
  std::string text = "METRICS\n";
  const auto define = [&](std::string_view name, std::string_view meaning) {
    text.append("  ").append(name).append("\n").append(wrapped(meaning, 6, kColumns));
  };
  for (const Definition& definition : kDefinitions) define(definition.name, definition.text);
  define("goodput",
         "Share of the OFFERED requests that finished within every per-request threshold (--slo) of their "
         "class. Refused, cancelled and unfinished requests are not good. Without thresholds: the share that "
         "finished. A metric that a request does not have (tpot of one token) breaks no threshold.");
  define("goodput_req, goodput_tok", "Good requests, and their tokens, per second.");
  define("out tok/s",
         "Tokens delivered per second. Tokens computed again after a preemption never count; their share of "
         "all computed tokens is the recompute tax.");
  text += "\nSAMPLES\n";
  text += wrapped(
      "Latencies are of finished requests; offered, refused, cancelled and unfinished ones are counted "
      "beside. "
      "Percentiles are exact up to 4 million requests and interpolate linearly between order statistics, as "
      "numpy does; beyond, they come from histograms with a relative error of at most 0.4 %, and the output "
      "says so. p99 needs 1,000 samples, p99.9 needs 10,000. The steady window leaves out the first and the "
      "last tenth of the time in which requests arrived. KV use is read at the end of each run of identical "
      "decode steps, at most 64. With several seeds, figures are means over seeds, max is the greatest. "
      "Intervals are 95 %: over seeds (Student's t), or by "
      "moving-block bootstrap for a fixed trace.",
      2, kColumns);
  text +=
      "\nNAMES ELSEWHERE\n"
      "  tpot     TPOT in vLLM bench and inference-perf, ITL in GenAI-Perf, AIPerf and GuideLLM\n"
      "  gap      ITL in vLLM bench and inference-perf, ICL in AIPerf\n"
      "  ntpot    NTPOT in inference-perf; the TPOT of GuideLLM is close to it (ttft included)\n"
      "  e2e      E2EL in vLLM bench, request latency in GenAI-Perf\n"
      "  ttft     most tools count from the actual sending, foretoken and MLPerf from the intended arrival\n"
      "  goodput  good requests per second in vLLM bench, a share of successful ones in inference-perf\n";
  return text;
}

}  // namespace foretoken

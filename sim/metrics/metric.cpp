#include "sim/metrics/metric.hpp"

namespace foretoken {
namespace {

struct Definition {
  std::string_view name;
  std::string_view text;
};

constexpr std::array<Definition, kMetrics> kDefinitions{{
    {"ttft",
     "Time to first token: from the intended arrival to the delivery of the first token. An engine that\n"
     "delivers at the end of a request or of a batch has its ttft there. Not defined for answers of 0 "
     "tokens."},
    {"tpot",
     "Time per output token of one request: (last token - first token) / (tokens - 1), tokens as the engine\n"
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
     "Resident without getting anything: a prompt of others runs alone, the budget is used up, blocks move.\n"
     "queue_time + prefill_time + decode_time + preempted_time + stalled_time = end - arrival, exactly."},
    {"gap",
     "Time between two tokens, pooled over all tokens of all requests: long answers weigh more. Kept in a\n"
     "histogram with a relative error of at most 0.4 %."},
}};

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
  for (const Definition& definition : kDefinitions) {
    text.append("  ").append(definition.name).append("\n      ");
    for (const char c : definition.text) {
      text.push_back(c);
      if (c == '\n') text.append("      ");
    }
    text.push_back('\n');
  }
  text +=
      "  goodput\n"
      "      Share of the OFFERED requests that finished within every per-request threshold (--slo) of "
      "their\n"
      "      class. Refused, cancelled and unfinished requests are not good. Without thresholds: the share\n"
      "      that finished. A metric that a request does not have (tpot of one token) breaks no threshold.\n"
      "  goodput_req, goodput_tok\n"
      "      Good requests, and their tokens, per second.\n"
      "  out tok/s\n"
      "      Tokens delivered per second. Tokens computed again after a preemption never count; their share "
      "of\n"
      "      all computed tokens is the recompute tax.\n"
      "\n"
      "SAMPLES\n"
      "  Latencies are of finished requests; offered, refused, cancelled and unfinished ones are counted "
      "beside.\n"
      "  Percentiles are exact up to 4 million requests and interpolate linearly between order statistics, "
      "as\n"
      "  numpy does; beyond, they come from histograms with a relative error of at most 0.4 %, and the "
      "output\n"
      "  says so. p99 needs 1,000 samples, p99.9 needs 10,000. The steady window leaves out the first and "
      "the\n"
      "  last tenth of the time in which requests arrived. Intervals are 95 %: over seeds (Student's t), or "
      "by\n"
      "  moving-block bootstrap for a fixed trace.\n"
      "\n"
      "NAMES ELSEWHERE\n"
      "  tpot    vLLM bench: TPOT.  GenAI-Perf and AIPerf: ITL.  GuideLLM: ITL.  inference-perf: TPOT.\n"
      "  gap     vLLM bench: ITL.   AIPerf: ICL.                 inference-perf: ITL.\n"
      "  ntpot   inference-perf: NTPOT.                          GuideLLM: close to its TPOT (ttft "
      "included).\n"
      "  e2e     vLLM bench: E2EL.  GenAI-Perf: request latency.\n"
      "  ttft    Most tools count it from the actual sending; foretoken and MLPerf from the intended "
      "arrival.\n"
      "  goodput vLLM bench: good requests per second.           inference-perf: share of successful ones "
      "only.\n";
  return text;
}

}  // namespace foretoken

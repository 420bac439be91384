#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/request.hpp"
#include "sim/workload/lengths.hpp"
#include "sim/workload/trace_reader.hpp"
#include "sim/workload/warning.hpp"

namespace foretoken {

/// Where arrivals come from. `trace`: the rows of a file. `poisson`, `gamma`: independent gaps. `on_off`:
/// Poisson with two rates in turn, phases of exponential length. `closed_loop`: each of `concurrency` clients
/// asks again a think time after its request ended.
enum class ArrivalKind : std::uint8_t { trace, poisson, gamma, on_off, closed_loop };

/// Arrival process of synthetic work.
struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::poisson;
  /// Mean rate of `poisson` and `gamma`.
  double rate_per_s = 1.0;
  /// Coefficient of variation of the gaps of `gamma`; 1 is Poisson.
  double cv = 1.0;
  /// Rates and mean durations of the phases of `on_off`, which begins with an on phase.
  double on_rate_per_s = 0.0;
  double off_rate_per_s = 0.0;
  Duration on{};
  Duration off{};
  /// Clients of `closed_loop`, their think time (a mean when exponential), and the span over which they
  /// start.
  std::int32_t concurrency = 1;
  Duration think{};
  bool think_exponential = false;
  Duration ramp{};
};

/// Prompts that begin alike: a request of the class has, with probability `share`, one of `groups` common
/// beginnings of `tokens` tokens (cut to the prompt where that is shorter), in blocks of `block_tokens`.
struct PrefixSpec {
  double share = 0.0;
  std::int32_t groups = 1;
  std::int32_t tokens = 0;
  std::int32_t block_tokens = 16;
};

/// One kind of request in a mix. For traces, `weight` labels the rows that carry no class of their own.
struct ClassSpec {
  std::string name = "default";
  double weight = 1.0;
  std::string tenant = "default";
  std::string source = "default";
  std::int32_t priority = 0;
  LengthSpec prompt_tokens;
  LengthSpec output_tokens;
  /// When set, prompt and output come in pairs resampled from the rows of this trace.
  std::string lengths_trace;
  PrefixSpec prefix;
  Duration patience = kForever;
  Duration cancel_after = kForever;
};

/// The bound on the answer that a client states where the trace has none: none at all, a fixed number (longer
/// answers are truncated and counted), or the true length (an oracle for schedulers that reserve for it; a
/// warning says so).
enum class MaxNewTokens : std::uint8_t { none, fixed, exact };

/// A trace as a source of arrivals. The window [from, to) is cut on the trace's own clock and moved to time
/// 0; then time is scaled, which keeps burstiness.
struct TraceSpec {
  std::string path;
  TraceReadOptions read;
  Duration from{};
  Duration to = kForever;
  /// Arrivals come this many times as fast.
  double rate_scale = 1.0;
  /// When positive, `rate_scale` is chosen to reach this mean rate, which takes one more pass over the file.
  double rate_per_s = 0.0;
  /// How many times the rows arrive, one pass after the other: capacity searches need longer runs than most
  /// traces are. Traces whose rows wait for each other are not repeated.
  std::int32_t passes = 1;
};

/// All that describes the work of a run; plain data.
struct WorkloadSpec {
  std::uint64_t seed = 1;
  ArrivalSpec arrivals;
  TraceSpec trace;
  /// At least one for synthetic work. Empty for a trace whose rows keep their own labels.
  std::vector<ClassSpec> classes;
  /// Offered requests at most; 0: no bound.
  std::int64_t requests = 0;
  /// Nothing arrives at or after this.
  Duration duration = kForever;
  MaxNewTokens max_new = MaxNewTokens::none;
  std::int32_t max_new_tokens = 0;
  /// When not negative, every request carries a prediction: the true length times exp(sigma z), at least 1.
  double prediction_sigma = -1.0;
  /// Prompt and answer together that count as over-long; 0: no check. Such requests are offered (and refused
  /// by the engine) or dropped; they are counted either way and never clipped.
  std::int32_t tokens_max = 0;
  bool drop_over_long = false;
  /// Where the figures come from and under which licence, for the header of a trace made from this.
  std::string provenance;
  std::string license;
};

/// Names behind the indices in Request.
struct WorkloadNames {
  std::vector<std::string> slo_classes;
  std::vector<std::string> tenants;
  std::vector<std::string> sources;
};

/// What a source has done so far.
struct WorkloadCounts {
  std::int64_t offered = 0;
  /// Prompt and answer exceed `tokens_max`; dropped when the spec says so, else offered.
  std::int64_t over_long = 0;
  /// Answers cut to the stated bound.
  std::int64_t outputs_truncated = 0;
  /// Rows outside the window.
  std::int64_t outside_window = 0;
  /// Later turns of sessions in which an earlier turn was cancelled or refused.
  std::int64_t turns_abandoned = 0;
};

/// A source that knows its names and what it did. `names` grows while a trace is read.
class WorkloadSource : public Source {
 public:
  /// Names met so far.
  virtual const WorkloadNames& names() const = 0;
  /// What was offered, dropped and cut so far.
  virtual const WorkloadCounts& counts() const = 0;
  /// Doubts about what has been offered so far.
  virtual std::vector<WorkloadWarning> warnings() const = 0;
  /// The trace behind the source; null for synthetic work.
  virtual const TraceInfo* trace() const = 0;
};

/// Builds the source; opens and checks what it reads from. InputError for a bad file or an impossible
/// specification.
std::unique_ptr<WorkloadSource> make_source(const WorkloadSpec& spec);

/// Requests per second of the rows in the window, at the trace's own speed; reads the file. InputError when
/// the window has fewer than two arrival times.
double measure_rate_per_s(const TraceSpec& trace);

/// Requests per second that the workload offers in the long run; measures a trace by reading it. 0 for closed
/// loops, whose rate is an outcome.
double offered_rate_per_s(const WorkloadSpec& spec);
/// The same work at another rate: arrival rates are multiplied, a trace's time is scaled. A closed loop is an
/// InputError.
WorkloadSpec at_rate(WorkloadSpec spec, double rate_per_s);

/// Poisson arrivals with log-normal lengths that have the moments of the Azure LLM inference trace 2023,
/// conversation (Azure Public Dataset, CC-BY-4.0; 19,366 requests: prompts mean 1154.70, sd 1108.79, longest
/// 14,050; answers mean 211.13, sd 162.87, longest 1,000).
WorkloadSpec azure_conv_moments(double rate_per_s, std::int64_t requests, std::uint64_t seed = 1);

}  // namespace foretoken

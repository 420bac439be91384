#include "sim/workload/workload.hpp"

#include "sim/base/error.hpp"
#include "sim/workload/offer_rules.hpp"
#include "sim/workload/synthetic_source.hpp"
#include "sim/workload/trace_source.hpp"

namespace foretoken {

std::unique_ptr<WorkloadSource> make_source(const WorkloadSpec& spec) {
  check_spec(spec);
  if (spec.arrivals.kind == ArrivalKind::trace) return std::make_unique<TraceSource>(spec);
  return std::make_unique<SyntheticSource>(spec);
}

double offered_rate_per_s(const WorkloadSpec& spec) {
  check_spec(spec);
  const ArrivalSpec& arrivals = spec.arrivals;
  switch (arrivals.kind) {
    case ArrivalKind::closed_loop: return 0.0;
    case ArrivalKind::on_off: {
      const double on_s = seconds(arrivals.on), off_s = seconds(arrivals.off);
      return (arrivals.on_rate_per_s * on_s + arrivals.off_rate_per_s * off_s) / (on_s + off_s);
    }
    case ArrivalKind::trace:
      if (spec.trace.rate_per_s > 0.0) return spec.trace.rate_per_s;
      return measure_rate_per_s(spec.trace) * spec.trace.rate_scale;
    default: return arrivals.rate_per_s;
  }
}

WorkloadSpec at_rate(WorkloadSpec spec, double rate_per_s) {
  const double now = offered_rate_per_s(spec);
  if (now == 0.0)
    throw input_error("workload: closed_loop", "work whose rate can be chosen", "a closed loop");
  const double factor = rate_per_s / now;
  spec.arrivals.rate_per_s *= factor;
  spec.arrivals.on_rate_per_s *= factor;
  spec.arrivals.off_rate_per_s *= factor;
  if (spec.arrivals.kind == ArrivalKind::trace) {
    // One pass now instead of one in every source made from this.
    const double own =
        spec.trace.rate_per_s > 0.0 ? measure_rate_per_s(spec.trace) : now / spec.trace.rate_scale;
    spec.trace.rate_scale = rate_per_s / own;
    spec.trace.rate_per_s = 0.0;
  }
  return spec;
}

WorkloadSpec azure_conv_moments(double rate_per_s, std::int64_t requests, std::uint64_t seed) {
  WorkloadSpec spec;
  spec.seed = seed;
  spec.requests = requests;
  spec.arrivals.kind = ArrivalKind::poisson;
  spec.arrivals.rate_per_s = rate_per_s;
  LengthMoments prompts, answers;
  prompts.mean = 1154.697;
  prompts.sd = 1108.794;
  answers.mean = 211.126;
  answers.sd = 162.866;
  ClassSpec chat;
  chat.prompt_tokens = log_normal(prompts, 1, 14050).value();
  chat.output_tokens = log_normal(answers, 1, 1000).value();
  spec.classes.push_back(chat);
  return spec;
}

}  // namespace foretoken

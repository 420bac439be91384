#include <algorithm>
#include <memory>

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"
#include "sim/simulation.hpp"

namespace foretoken {
namespace {

constexpr int kDoublingsMax = 40;
/// Requests that a run of the search has at least; shorter work is repeated.
constexpr std::int64_t kRequestsMin = 10'000;

/// Simulated time that a run may take: the engine's clock ends after 104 days.
constexpr double kSpanMax_s = 8e6;
/// What arrivals may be at most.
constexpr double kRateMax_per_s = 1e9;

/// A search over rates; remembers what it tried.
class CapacitySearch {
 public:
  CapacitySearch(const Scenario& scenario, const CapacityOptions& options)
      : scenario_(scenario), options_(options) {
    // Percentiles and intervals are not looked at, so no time goes into them.
    scenario_.replicates = 1;
    scenario_.slo.clear();
    scenario_.metrics.bootstrap_resamples = 0;
    lengthen();
  }

  /// Whether a rate holds.
  bool holds(double rate_per_s) {
    SimulateOptions options;
    options.stop = options_.stop;
    options.hash_inputs = false;
    const Simulation run = simulate(at_rate(scenario_, rate_per_s), options);
    if (run.stopped) result_.stopped = true;
    const CapacityPoint point{rate_per_s, run.report.steady.served_share.value_or(0.0)};
    if (result_.stopped) return false;
    totals_ = run.report.whole.totals;
    result_.points.push_back(point);
    if (options_.progress) options_.progress(point);
    const bool is_served = point.served_share >= options_.served_share_min;
    if (is_served && rate_per_s > result_.rate_per_s) {
      result_.rate_per_s = rate_per_s;
      result_.served_share = point.served_share;
    }
    if (!is_served && (result_.rate_failed_per_s == 0 || rate_per_s < result_.rate_failed_per_s))
      result_.rate_failed_per_s = rate_per_s;
    return is_served;
  }

  CapacityResult search(double rate_per_s) {
    bracket(rate_per_s);
    while (!result_.stopped && has_bracket() &&
           result_.rate_failed_per_s - result_.rate_per_s > options_.tolerance * result_.rate_per_s)
      holds(0.5 * (result_.rate_per_s + result_.rate_failed_per_s));
    return result_;
  }

 private:
  /// A few requests more or less in flight at the borders of the window must not decide whether 1 % is
  /// missing.
  void lengthen() {
    WorkloadSpec& workload = scenario_.workload;
    if (workload.arrivals.kind != ArrivalKind::trace) {
      if (workload.requests > 0) workload.requests = std::max(workload.requests, kRequestsMin);
      return;
    }
    if (workload.trace.path == "-" || scenario_.policy().prefix_cache) return;
    const std::unique_ptr<WorkloadSource> source = make_source(workload);
    std::int64_t count = 0;
    for (; count < kRequestsMin && source->next_time() != kNever; ++count) {
      const Offer offer = source->pop();
      source->on_end(offer.request.id, offer.request.arrival, Ending::finished);
    }
    if (count == 0 || count >= kRequestsMin) return;
    workload.trace.passes = static_cast<std::int32_t>((kRequestsMin + count - 1) / count);
    // Passes are over the whole trace, of which a bound took a part.
    if (workload.requests > 0) workload.requests = kRequestsMin;
  }

  /// What is refused at one rate is refused at every rate. A few more or less in the steady window are left
  /// to the search.
  bool is_hopeless() const {
    return static_cast<double>(totals_.refused()) >
           2 * (1 - options_.served_share_min) * static_cast<double>(totals_.offered);
  }

  /// Why some requests are never served, for people; empty where none are refused.
  std::string refusals() const {
    std::string text;
    const auto add = [&](std::int64_t requests, const std::string& why) {
      if (requests > 0)
        text += "; " + with_commas(requests) + " of " + with_commas(totals_.offered) +
                " requests are refused at any rate, since they are longer than " + why;
    };
    add(totals_.refused_context, "max_model_len = " + std::to_string(scenario_.capacity.model_tokens_max));
    add(totals_.refused_memory, "the KV pool, blocks = " + std::to_string(scenario_.capacity.kv_blocks));
    return text;
  }

  [[noreturn]] void give_up() const {
    const CapacityPoint& last = result_.points.back();
    throw InfeasibleError("no rate is served: at " + short_number(last.rate_per_s) + " req/s " +
                          short_number(100 * last.served_share) +
                          " % of the requests are, and lower rates do no "
                          "better" +
                          refusals());
  }

  bool can_be_run(double rate_per_s) const {
    return rate_per_s <= kRateMax_per_s && static_cast<double>(totals_.offered) <= kSpanMax_s * rate_per_s;
  }

  bool has_bracket() const { return result_.rate_per_s > 0 && result_.rate_failed_per_s > 0; }

  void bracket(double rate_per_s) {
    const bool starts_held = holds(rate_per_s);
    if (!starts_held && !result_.stopped && is_hopeless()) give_up();
    for (int i = 0; i < kDoublingsMax && !has_bracket() && !result_.stopped; ++i) {
      rate_per_s *= starts_held ? 2.0 : 0.5;
      if (!can_be_run(rate_per_s)) break;
      holds(rate_per_s);
    }
    if (result_.rate_per_s == 0 && !result_.stopped) give_up();
  }

  Scenario scenario_;
  const CapacityOptions& options_;
  /// Of the run before.
  RequestTotals totals_;
  CapacityResult result_;
};

}  // namespace

Scenario at_rate(const Scenario& scenario, double rate_per_s) {
  Scenario changed = scenario;
  changed.workload = at_rate(scenario.workload, rate_per_s);
  return changed;
}

CapacityResult find_capacity(const Scenario& scenario, const CapacityOptions& options) {
  const double rate_per_s = offered_rate_per_s(scenario.workload);
  if (rate_per_s <= 0)
    throw InputError("workload: expected arrivals at a rate, found a closed loop, whose rate is an outcome");
  return CapacitySearch(scenario, options).search(rate_per_s);
}

}  // namespace foretoken

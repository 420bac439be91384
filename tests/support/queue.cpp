#include "tests/support/queue.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "tests/support/stage.hpp"

namespace foretoken::theory {
namespace {

/// Prices steps, and watches who comes, joins and leaves.
class Watcher final : public Executor, public Observer {
 public:
  Watcher(const laws::Setup& setup, const Scheduler& scheduler, QueueRun& run)
      : priced_(setup, INT64_MAX), scheduler_(scheduler), run_(run) {}

  Window launch(const StepPlan& plan, Time begin) override { return priced_.launch(plan, begin); }
  Time complete(const StepPlan& plan, const Window& window) override {
    return priced_.complete(plan, window);
  }
  Time transfer_end(const Copy& copy, Time begin) override { return priced_.transfer_end(copy, begin); }
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}

  void on_arrival(Handle handle, const Offer& offer, Time t) override {
    advance(t);
    if (index(handle) >= ids_.size()) ids_.resize(index(handle) + 1);
    const auto id = static_cast<std::size_t>(offer.request.id);
    ids_[index(handle)] = id;
    if (id >= run_.visits.size()) run_.visits.resize(id + 1);
    Visit& visit = run_.visits[id];
    visit.arrival = offer.request.arrival;
    visit.prompt_tokens = offer.request.prompt_tokens;
    visit.output_tokens = offer.output_tokens;
    visit.slo_class = offer.request.slo_class;
    count(run_.found, present_);
    ++present_;
    ++by_class_.at(visit.slo_class);
    alive_ = scheduler_.alive();
  }
  void on_reject(const Offer&, Refusal, Time) override { LAW(false, "nobody is refused here"); }
  void on_admit(const Admission& admission, Time t) override {
    Visit& visit = run_.visits[ids_[index(admission.request)]];
    if (visit.admitted == kNever) visit.admitted = t;
  }
  void on_preempt(const Eviction&, std::int32_t, Time) override {}
  void on_step(const StepRecord& record) override {
    run_.busy += record.end() - record.begin;
    if (!run_.busy_periods.empty() && run_.busy_periods.back().end == record.begin)
      run_.busy_periods.back().end = record.end();
    else
      run_.busy_periods.push_back({record.begin, record.end()});
  }
  void on_token(Handle, std::int32_t, Time) override {}
  void on_end(Handle handle, Ending, std::int32_t, Time t) override {
    advance(t);
    Visit& visit = run_.visits[ids_[index(handle)]];
    visit.end = t;
    --present_;
    --by_class_.at(visit.slo_class);
    count(run_.left_behind, present_);
    alive_ = scheduler_.alive();
  }
  void on_batch_end(Time) override {}

 private:
  static void count(std::vector<std::int64_t>& counts, std::int64_t n) {
    const auto at = static_cast<std::size_t>(n);
    if (at >= counts.size()) counts.resize(at + 1);
    ++counts[at];
  }
  void advance(Time t) {
    const std::int64_t passed = (t - last_).count();
    LAW(passed >= 0, "events come in the order of time");
    last_ = t;
    run_.alive_ps += passed * alive_;
    const auto at = static_cast<std::size_t>(present_);
    if (at >= run_.with_exactly.size()) run_.with_exactly.resize(at + 1);
    run_.with_exactly[at] += passed;
    for (std::size_t k = 0; k < kClasses; ++k) run_.class_ps[k] += passed * by_class_[k];
  }

  laws::PricedExecutor priced_;
  const Scheduler& scheduler_;
  QueueRun& run_;
  std::vector<std::size_t> ids_;  // by handle
  Time last_{};
  std::int64_t present_ = 0;
  std::int64_t alive_ = 0;
  std::array<std::int64_t, kClasses> by_class_{};
};

}  // namespace

QueueRun run_queue(const laws::Setup& setup, Source& source) {
  QueueRun run;
  Scheduler scheduler(setup.policy, setup.capacity, setup.scheduler);
  Watcher watcher(setup, scheduler, run);
  Engine engine(scheduler, watcher, watcher, setup.engine);
  Engine* const engines[] = {&engine};
  VirtualClock clock;
  const RunResult result = foretoken::run(source, engines, clock);
  run.end = result.end;
  run.drained = result.drained;
  LAW(result.drained && engine.is_idle());
  return run;
}

QueueRun run_queue(const laws::Setup& setup) {
  laws::ListSource source(setup.items);
  return run_queue(setup, source);
}

laws::Setup single_server() {
  laws::Setup setup;
  setup.policy.sequences_max = 1;
  setup.policy.batch_tokens_max = 0;
  setup.capacity = {1 << 16, 0, 1 << 20, false};
  return setup;
}

std::int64_t service_ps(const laws::Prices& p, std::int32_t prompt_tokens, std::int32_t output_tokens) {
  std::int64_t sum = p.step + p.chunk_token * prompt_tokens;
  // The decode step that makes token k has the prompt and k - 2 answer tokens in the cache.
  for (std::int32_t k = 2; k <= output_tokens; ++k)
    sum += p.step + p.decode_row + p.context_token * (prompt_tokens + k - 2);
  return sum;
}

WorkloadSpec poisson(double rate_per_s, std::int64_t requests, std::uint64_t seed) {
  WorkloadSpec spec;
  spec.seed = seed;
  spec.arrivals.kind = ArrivalKind::poisson;
  spec.arrivals.rate_per_s = rate_per_s;
  spec.classes.resize(1);
  spec.requests = requests;
  spec.max_new = MaxNewTokens::exact;
  return spec;
}

std::vector<laws::Item> items_of(const WorkloadSpec& spec) {
  const std::unique_ptr<WorkloadSource> source = make_source(spec);
  std::vector<laws::Item> items;
  while (source->next_time() != kNever) {
    laws::Item item;
    item.offer = source->pop();
    item.offer.request.prefix_hashes = {};
    items.push_back(std::move(item));
  }
  return items;
}

void require_lindley(const laws::Setup& setup, const QueueRun& run,
                     const std::function<std::int64_t(std::size_t)>& extra) {
  std::int64_t is_free = 0;
  for (std::size_t i = 0; i < run.visits.size(); ++i) {
    const Visit& v = run.visits[i];
    const std::int64_t arrival = picoseconds(v.arrival);
    const std::int64_t wait = std::max<std::int64_t>(0, is_free - arrival);
    const std::int64_t service = service_ps(setup.prices, v.prompt_tokens, v.output_tokens);
    LAW(v.wait() == wait, i, v.wait(), wait);
    LAW(v.sojourn() == wait + service, i, v.sojourn(), wait, service);
    is_free = arrival + wait + service + (extra ? extra(i) : 0);
  }
}

void require_little(const QueueRun& run) {
  std::int64_t lives = 0;
  std::array<std::int64_t, kClasses> by_class{};
  for (const Visit& v : run.visits) {
    LAW(v.end != kNever && v.sojourn() >= 0);
    lives += v.sojourn();
    by_class[v.slo_class] += v.sojourn();
  }
  LAW(run.alive_ps == lives, run.alive_ps, lives);
  for (std::size_t k = 0; k < kClasses; ++k) LAW(run.class_ps[k] == by_class[k], k);
  LAW(std::accumulate(run.class_ps.begin(), run.class_ps.end(), std::int64_t{0}) == lives);
}

laws::Setup millisecond_server() {
  laws::Setup setup = single_server();
  setup.prices = {};
  setup.prices.step = 200'000'000;
  setup.prices.chunk_token = 1'000'000;
  setup.prices.decode_row = 50'000'000;
  setup.prices.context_token = 0;
  return setup;
}

double mean_wait(const QueueRun& run) {
  double sum = 0;
  for (std::size_t i = kWarmUp; i < run.visits.size(); ++i) sum += static_cast<double>(run.visits[i].wait());
  return sum / static_cast<double>(kCounted);
}

std::vector<double> deterministic_waits(const laws::Setup& setup, double load, const LengthSpec& answers) {
  std::vector<double> waits;
  for (std::size_t r = 0; r < kReplicates; ++r) {
    WorkloadSpec spec = poisson(1000.0 * load, kWarmUp + kCounted, 100 + r);
    spec.classes[0].prompt_tokens = fixed_length(300);
    spec.classes[0].output_tokens = answers;
    const auto source = make_source(spec);
    const QueueRun run = run_queue(setup, *source);
    LAW(run.visits.size() == static_cast<std::size_t>(kWarmUp + kCounted));
    waits.push_back(mean_wait(run));
  }
  return waits;
}

void require_mean(const Interval& interval, double expected, double relative_width_max) {
  LAW(interval.holds(expected), "mean", interval.mean, "+-", interval.half, "but theory says", expected);
  LAW(interval.half < relative_width_max * expected, "too wide to tell", interval.half, expected);
}

Interval interval_of(const std::vector<double>& replicates) {
  LAW(replicates.size() >= 20);
  const auto n = static_cast<double>(replicates.size());
  const double mean = std::accumulate(replicates.begin(), replicates.end(), 0.0) / n;
  double squares = 0;
  for (const double x : replicates) squares += (x - mean) * (x - mean);
  constexpr double kStudent19 = 3.883;  // two-sided 99.9 %
  return {mean, kStudent19 * std::sqrt(squares / (n - 1) / n)};
}

}  // namespace foretoken::theory

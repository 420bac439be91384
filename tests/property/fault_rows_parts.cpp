#include <type_traits>

#include "sim/scenario.hpp"
#include "tests/property/fault_rows.hpp"
#include "tests/support/part_laws.hpp"
#include "tests/support/queue.hpp"

namespace foretoken::laws {
namespace {

/// Does not notice when an event is moved to an earlier time.
class LazyQueue {
 public:
  std::uint32_t add(Rank rank) {
    times_.push_back(kNever);
    return queue_.add(rank);
  }
  void update(std::uint32_t actor, Time time) {
    if (time < times_[actor] && times_[actor] != kNever) return;
    times_[actor] = time;
    queue_.update(actor, time);
  }
  Time first_time() const { return queue_.first_time(); }
  std::uint32_t first() const { return queue_.first(); }

 private:
  EventQueue queue_;
  std::vector<Time> times_;
};

/// Sums one triangle too large.
struct RashWindow : Window {
  Time end_after(std::int64_t repeats) const {
    return begin + first * repeats + growth * (repeats * (repeats + 1) / 2);
  }
};

/// Forgets the last step of a progression.
class ShortHistogram {
 public:
  void add(std::int64_t value, std::int64_t n) { histogram_.add(value, n); }
  void add_progression(std::int64_t first, std::int64_t growth, std::int64_t repeats, std::int64_t n) {
    histogram_.add_progression(first, growth, std::max<std::int64_t>(0, repeats - 1), n);
  }
  auto count() const { return histogram_.count(); }
  auto mean_ps() const { return histogram_.mean_ps(); }
  auto max_ps() const { return histogram_.max_ps(); }
  auto quantile_ps(double q) const { return histogram_.quantile_ps(q); }

 private:
  Histogram histogram_;
};

/// Says that requests arrived before they came.
class BackdatingSource final : public SourceAround {
 public:
  using SourceAround::SourceAround;
  Offer pop() override {
    Offer offer = inner_.pop();
    offer.request.arrival -= Duration{1};
    return offer;
  }
};

void part_rows_of_time(std::vector<FaultRow>& rows) {
  rows.push_back(drawn_row("1", "the queue does not notice that an event comes earlier",
                           "queue.first() == first", 20, [](Draw& draw, bool faulty) {
                             faulty ? queue_is_in_order<LazyQueue>(draw)
                                    : queue_is_in_order<EventQueue>(draw);
                           }));
  rows.push_back(drawn_row("11", "a window's closed form has the wrong triangle",
                           "closed form and loop differ", 20, [](Draw& draw, bool faulty) {
                             faulty ? windows_are_sums<RashWindow>(draw) : windows_are_sums<Window>(draw);
                           }));
  rows.push_back(drawn_row("11", "a progression is counted one step short", "closed.count() == loop.count()",
                           20, [](Draw& draw, bool faulty) {
                             faulty ? progressions_are_loops<ShortHistogram>(draw)
                                    : progressions_are_loops<Histogram>(draw);
                           }));
}

void part_rows_of_files(std::vector<FaultRow>& rows) {
  rows.push_back(drawn_row("13", "a scenario's seed follows from what is written first",
                           "the order of members matters", 20, [](Draw& draw, bool faulty) {
                             if (!faulty) return member_order_is_free(draw);
                             member_order_is_free(draw, [](const Json& content) {
                               Json resolved = scenario_to_json(read_scenario(content, "drawn", ""));
                               const std::string& key = content.as_object().front().first;
                               resolved.set("seed", static_cast<std::int64_t>(key.size()));
                               return resolved;
                             });
                           }));
  rows.push_back(drawn_row("10", "the last row of a file is lost", "row.prompt_tokens == same.prompt_tokens",
                           20, [](Draw& draw, bool faulty) {
                             if (!faulty) return split_trace_is_whole(draw);
                             split_trace_is_whole(draw, [](const std::string& path) {
                               std::vector<TraceRow> kept = rows_of_trace(path);
                               kept.pop_back();
                               return kept;
                             });
                           }));
}

/// Requests that queue for a server with one place.
Setup queueing() {
  Setup setup = theory::single_server();
  setup.items = roomy().items;
  for (std::size_t i = 0; i < setup.items.size(); ++i)
    setup.items[i].offer.request.prompt_tokens = 20 - static_cast<std::int32_t>(i);
  return setup;
}

void theory_rows(std::vector<FaultRow>& rows) {
  rows.push_back(
      drawn_row("14", "the server does not keep the order", "v.wait() == wait", 1, [](Draw&, bool faulty) {
        const Setup setup = queueing();
        Setup served = setup;
        if (faulty) served.policy.order = Order::shortest_prompt;
        theory::require_lindley(setup, theory::run_queue(served));
      }));
  rows.push_back(drawn_row("14", "the server has costs of its own", "v.sojourn() == wait + service", 1,
                           [](Draw&, bool faulty) {
                             const Setup setup = queueing();
                             Setup served = setup;
                             if (faulty) ++served.prices.context_token;
                             theory::require_lindley(setup, theory::run_queue(served));
                           }));
  rows.push_back(drawn_row("15", "requests are in the system before they are counted",
                           "run.alive_ps == lives", 1, [](Draw&, bool faulty) {
                             const Setup setup = queueing();
                             ListSource source(setup.items);
                             BackdatingSource early(source);
                             theory::require_little(
                                 theory::run_queue(setup, faulty ? static_cast<Source&>(early) : source));
                           }));
  rows.push_back(drawn_row(
      "16", "steps take a tenth longer than they should", "interval.holds(expected)", 1,
      [](Draw&, bool faulty) {
        Setup setup = theory::millisecond_server();
        if (faulty) setup.prices.step += setup.prices.step / 10;
        theory::require_mean(theory::interval_of(theory::deterministic_waits(setup, 0.5, fixed_length(3))),
                             0.5e9, 0.12);
      }));
  rows.push_back(drawn_row("16", "services vary and the formula takes them for equal",
                           "interval.holds(expected)", 1, [](Draw&, bool faulty) {
                             const LengthSpec answers = faulty ? uniform_length(1, 5) : fixed_length(3);
                             theory::require_mean(theory::interval_of(theory::deterministic_waits(
                                                      theory::millisecond_server(), 0.5, answers)),
                                                  0.5e9, 0.12);
                           }));
}

/// What a scheduler is given says nothing of the true length of an answer.
template <class Given>
constexpr bool kTellsLength = requires(Given given) {
  given.output_tokens;
};
static_assert(kTellsLength<Offer> && !kTellsLength<Request>);
static_assert(std::is_invocable_v<decltype(&Scheduler::submit), Scheduler&, const Request&>);
static_assert(!std::is_convertible_v<Offer, Request>);
static_assert(std::is_integral_v<Duration::rep> && std::is_integral_v<Time::rep>);

void held_by_types(std::vector<FaultRow>& rows) {
  FaultRow peeking{"I13",
                   "a scheduler reads the true length of an answer",
                   "Scheduler::submit takes a Request, which has no such member, and no Offer",
                   {},
                   true};
  FaultRow rounding{"12 15",
                    "a time is rounded on its way",
                    "times and durations are 64-bit integers, which add up without rounding",
                    {},
                    true};
  rows.push_back(peeking);
  rows.push_back(rounding);
}

}  // namespace

std::vector<FaultRow> part_rows() {
  std::vector<FaultRow> rows;
  part_rows_of_time(rows);
  part_rows_of_files(rows);
  theory_rows(rows);
  held_by_types(rows);
  return rows;
}

}  // namespace foretoken::laws

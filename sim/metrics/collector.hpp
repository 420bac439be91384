#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/core/observer.hpp"
#include "sim/core/policy.hpp"
#include "sim/metrics/gap_maxima.hpp"
#include "sim/metrics/histogram.hpp"
#include "sim/metrics/request_record.hpp"
#include "sim/metrics/request_table.hpp"
#include "sim/metrics/series.hpp"
#include "sim/metrics/slo.hpp"
#include "sim/metrics/totals.hpp"

namespace foretoken {

/// What to collect.
struct CollectorOptions {
  /// When clients see tokens; ttft and e2e are counted at delivery.
  Delivery delivery = Delivery::streamed;
  /// Up to this many finished requests percentiles are exact; beyond, everything moves into histograms and
  /// memory stays flat.
  std::int64_t exact_requests_max = 4'000'000;
  /// Thresholds, resolved: they define which requests are good.
  std::vector<Slo> slos;
  /// Tokens per KV block, for fragmentation.
  std::int32_t block_tokens = 16;
  /// Groups (class, tenant, source) beyond which gaps, and latencies in histogram mode, are no longer split.
  std::int64_t split_groups_max = 64;
  /// Receives every request as it leaves; null: none.
  RequestSink* sink = nullptr;
};

/// Requests that share class, tenant and source, with what is known of them.
struct GroupCell {
  std::uint16_t slo_class = 0;
  std::uint16_t tenant = 0;
  std::uint16_t source = 0;
  RequestTotals totals;
};

/// Turns the calls of an Observer into metrics. Columns of a request are touched at its arrival, chunks,
/// first token, preemptions and end, never per token: lock-step rows are accounted in closed form, with one
/// running number of decode steps, their busy time and the suffix maxima of their gaps. A row's tokens are
/// made when the engine says so; `tpot`, `gap` and `stall_max` are of tokens as made, `ttft`, `ntpot` and
/// `e2e` as delivered.
class Collector final : public Observer {
 public:
  explicit Collector(CollectorOptions options = {});
  ~Collector() override;

  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission& admission, Time t) override;
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override;
  void on_step(const StepRecord& record) override;
  void on_token(Handle handle, std::int32_t emitted, Time t) override;
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_stepless(const StepPlan& plan, Time t) override;
  void on_batch_end(Time t) override;

  /// Ends the run at `t`, at or after every call: requests still alive are censored. Call once, before
  /// reading anything.
  void finish_run(Time t);

  const CollectorOptions& options() const { return options_; }
  /// The cells in order of appearance; all totals are sums over them.
  const std::vector<GroupCell>& cells() const { return cells_; }
  RequestTotals totals() const;
  const WorkTotals& work() const { return work_; }
  const LimitTotals& limits() const { return limits_; }
  const StateTotals& state() const { return state_; }
  const TimeSeries& series() const { return series_; }
  std::int64_t steps() const { return work_.weight_passes; }
  /// Whether percentiles of finished requests are exact: the table then has every one of them.
  bool exact() const { return histograms_.empty(); }
  const RequestTable& table() const { return table_; }
  /// The metric over the selected cells (empty: all) from histograms; only where `exact()` is false, or for
  /// the gap. Nothing counted when the split was given up (more than `split_groups_max` cells).
  Histogram merged(Metric metric, const std::vector<char>& selected) const;
  /// Whether gaps (and latencies in histogram mode) are known cell by cell.
  bool is_split() const { return static_cast<std::int64_t>(cells_.size()) <= options_.split_groups_max; }

  Time first_arrival() const { return first_arrival_; }
  Time last_arrival() const { return last_arrival_; }
  Time end() const { return end_; }
  /// Arrivals at the very time of the one before.
  std::int64_t tied_arrivals() const { return tied_arrivals_; }
  /// How long after its arrival a request was seen by the engine: greatest and sum.
  Duration arrival_lag_max() const { return arrival_lag_max_; }
  Wide arrival_lag_ps() const { return arrival_lag_ps_; }
  bool has_prefix_data() const { return has_prefix_data_; }
  std::int64_t swapped_max() const { return swapped_max_; }

 private:
  enum class State : std::uint8_t { free, waiting, admitted, catching_up, lock_step };
  struct Row {
    std::int64_t arrival = 0;
    std::int64_t mark = 0;   // since when in this state
    std::int64_t basis = 0;  // catching up: time granted so far; lock-step: decode_busy_ at joining
    std::int64_t queue = 0;
    std::int64_t preempted = 0;
    std::int64_t prefill = 0;
    std::int64_t stalled = 0;
    std::int64_t first_token = -1;
    std::int64_t last_token = -1;  // valid outside lock-step
    std::int64_t stall_max = -1;
    std::int64_t joined_step = 0;  // number of the first decode step in which it takes part
    std::int32_t emitted = 0;      // valid outside lock-step
    std::int32_t frontier = 0;     // tokens that have been in the KV cache at some time
    std::int32_t prompt_tokens = 0;
    std::int32_t output_wanted = 0;
    std::int32_t cached_tokens = 0;
    std::int32_t preemptions = 0;
    std::uint32_t id = 0;
    std::uint32_t cell = 0;
    State state = State::free;
    bool admitted_before = false;
    bool decoding = false;  // catching up with one token that decode owes, not with a prompt
    bool pending = false;   // in lock-step, first gap not yet known
    bool leaving = false;   // preempted while its last step is in flight
  };
  struct Held {
    RequestRecord record;
    std::uint32_t cell = 0;
    std::int64_t first_token = -1;
  };

  // `inline`: called in one file only, so that no copy is kept for others.
  // collector.cpp: lives.
  Row& row(Handle handle) {
    FT_CHECK(index(handle) < rows_.size(), index(handle));
    return rows_[index(handle)];
  }
  std::uint32_t cell_of(const Request& request);
  std::uint32_t new_cell(const Request& request, std::uint64_t key);
  inline void count_arrival(const Offer& offer, std::uint32_t cell, Time t);
  inline void advance_population(std::int64_t t);
  void close(Row& row, std::int64_t t);

  // collector_requests.cpp: what becomes of a life.
  RequestRecord make_record(const Row& row, std::int64_t t, Outcome outcome) const;
  void finish(RequestRecord& record, std::uint32_t cell, std::int64_t first_token, std::int64_t delivered);
  inline bool is_good(const RequestRecord& record) const;
  void keep(const RequestRecord& record, std::uint32_t cell);
  void move_to_histograms();

  // collector_step.cpp: steps and gaps.
  inline void count_chunks(const StepRecord& record, std::int64_t duration);
  void take_leavers(const StepPlan& plan, std::int64_t begin);
  inline void count_decodes(const StepRecord& record, std::int64_t duration);
  inline void settle_pending(std::int64_t first_end);
  void settle_leaving(std::int64_t t);
  void prune_maxima();
  inline void count_work(const StepRecord& record);
  inline void count_state(const StepRecord& record, std::int64_t duration);
  void join_lock_step(Row& row, Handle handle, std::int64_t t);
  void leave_lock_step(Row& row, std::int64_t t);
  std::int32_t emitted_now(const Row& row) const;
  void add_gap(const Row& row, std::int64_t gap);
  bool splits_gaps() const { return cells_.size() > 1 && is_split(); }

  CollectorOptions options_;
  std::vector<Row> rows_;
  std::vector<GroupCell> cells_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> cell_index_;  // sorted by key
  std::uint64_t last_key_ = ~std::uint64_t{0};
  std::uint32_t last_cell_ = 0;

  std::vector<Histogram> histograms_;  // cell by cell, kRequestMetrics each; all in one where not split
  Histogram gaps_;
  std::vector<Histogram> cell_gaps_;     // empty while there is one cell
  std::vector<std::int32_t> cell_rows_;  // rows in lock-step whose first gap is known, by cell
  RequestTable table_;
  TimeSeries series_;
  std::vector<Held> held_;  // ended, not yet delivered (batch_end)

  WorkTotals work_;
  LimitTotals limits_;
  StateTotals state_;

  GapMaxima maxima_;
  std::size_t maxima_prune_at_ = 4096;
  std::vector<Handle> pending_;
  std::vector<Handle> leaving_;
  std::int64_t decode_steps_ = 0;
  std::int64_t decode_busy_ = 0;  // duration of all decode steps so far
  std::int64_t decode_end_ = 0;   // end of the last one
  std::int32_t lock_rows_ = 0;
  std::int32_t pending_rows_ = 0;

  std::int64_t in_system_ = 0;
  std::int64_t resident_ = 0;
  std::int64_t population_since_ = 0;
  Time first_arrival_ = kNever;
  Time last_arrival_{};
  Time end_{};
  std::int64_t tied_arrivals_ = 0;
  Duration arrival_lag_max_{};
  Wide arrival_lag_ps_ = 0;
  std::int64_t swapped_max_ = 0;
  bool has_prefix_data_ = false;
  bool run_ended_ = false;
};

}  // namespace foretoken

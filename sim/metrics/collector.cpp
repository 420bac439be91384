#include "sim/metrics/collector.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace foretoken {

Collector::Collector(CollectorOptions options) : options_(std::move(options)) {
  FT_CHECK(options_.exact_requests_max >= 0 && options_.split_groups_max >= 1);
}

Collector::~Collector() = default;

std::uint32_t Collector::cell_of(const Request& request) {
  const std::uint64_t key = std::uint64_t{request.slo_class} | std::uint64_t{request.tenant} << 16 |
                            std::uint64_t{request.source} << 32;
  if (key == last_key_) return last_cell_;
  last_key_ = key;
  const auto at = std::lower_bound(cell_index_.begin(), cell_index_.end(), std::pair{key, 0u});
  last_cell_ = at != cell_index_.end() && at->first == key ? at->second : new_cell(request, key);
  return last_cell_;
}

std::uint32_t Collector::new_cell(const Request& request, std::uint64_t key) {
  const auto cell = static_cast<std::uint32_t>(cells_.size());
  const bool was_split = is_split();
  cell_index_.insert(std::lower_bound(cell_index_.begin(), cell_index_.end(), std::pair{key, 0u}),
                     {key, cell});
  cells_.push_back({request.slo_class, request.tenant, request.source, {}});
  cell_rows_.push_back(0);
  if (is_split()) {
    // While there is one cell its gaps are those of all; the second one makes them part.
    if (cell == 1) cell_gaps_.push_back(gaps_);
    if (cell >= 1) cell_gaps_.emplace_back();
    if (!exact()) histograms_.resize(histograms_.size() + kRequestMetrics);
  } else if (was_split) {
    cell_gaps_.clear();
    for (std::size_t h = kRequestMetrics; h < histograms_.size(); ++h)
      histograms_[h % kRequestMetrics].merge(histograms_[h]);
    if (!exact()) histograms_.resize(kRequestMetrics);
  }
  return cell;
}

void Collector::advance_population(std::int64_t t) {
  const std::int64_t passed = t - population_since_;
  FT_CHECK(passed >= 0, t, population_since_);
  state_.in_system_ps += wide_product(in_system_, passed);
  state_.resident_ps += wide_product(resident_, passed);
  population_since_ = t;
}

void Collector::count_arrival(const Offer& offer, std::uint32_t cell, Time t) {
  const Request& request = offer.request;
  FT_CHECK(request.arrival <= t && !run_ended_, picoseconds(request.arrival), picoseconds(t));
  RequestTotals& totals = cells_[cell].totals;
  ++totals.offered;
  totals.prompt_tokens += request.prompt_tokens;
  if (first_arrival_ == kNever)
    first_arrival_ = request.arrival;
  else if (request.arrival == last_arrival_)
    ++tied_arrivals_;
  last_arrival_ = std::max(last_arrival_, request.arrival);
  const Duration lag = t - request.arrival;
  arrival_lag_max_ = std::max(arrival_lag_max_, lag);
  arrival_lag_ps_ += lag.count();
  has_prefix_data_ = has_prefix_data_ || !request.prefix_hashes.empty();
  ++series_.at(request.arrival).arrivals;
  advance_population(picoseconds(t));
  // It has been in the system since it came, however late it was seen.
  state_.in_system_ps += lag.count();
}

void Collector::on_arrival(Handle handle, const Offer& offer, Time t) {
  if (index(handle) >= rows_.size()) rows_.resize(std::max(index(handle) + 1, rows_.size() * 2));
  Row& r = rows_[index(handle)];
  FT_CHECK(r.state == State::free, index(handle));
  const std::uint32_t cell = cell_of(offer.request);
  count_arrival(offer, cell, t);
  ++in_system_;
  r = Row{};
  r.arrival = r.mark = picoseconds(offer.request.arrival);
  r.prompt_tokens = offer.request.prompt_tokens;
  r.output_wanted = offer.output_tokens;
  r.id = static_cast<std::uint32_t>(offer.request.id);
  r.cell = cell;
  r.state = State::waiting;
}

void Collector::on_reject(const Offer& offer, Refusal why, Time t) {
  const std::uint32_t cell = cell_of(offer.request);
  count_arrival(offer, cell, t);
  state_.life_ps += (t - offer.request.arrival).count();
  RequestTotals& totals = cells_[cell].totals;
  ++(why == Refusal::never_fits ? totals.refused_memory : totals.refused_context);
  ++series_.at(t).ended;
  if (options_.sink == nullptr) return;
  RequestRecord record;
  record.id = offer.request.id;
  record.outcome = Outcome::refused;
  record.slo_class = offer.request.slo_class;
  record.tenant = offer.request.tenant;
  record.source = offer.request.source;
  record.prompt_tokens = offer.request.prompt_tokens;
  record.arrival_ps = picoseconds(offer.request.arrival);
  record.end_ps = picoseconds(t);
  record.value_ps.fill(-1);
  options_.sink->write(record);
}

void Collector::on_admit(const Admission& admission, Time t) {
  Row& r = row(admission.request);
  FT_CHECK(r.state == State::waiting, index(admission.request));
  r.state = State::admitted;
  r.decoding = admission.swapped_in && r.emitted > 0;
  advance_population(picoseconds(t));
  ++resident_;
  RequestTotals& totals = cells_[r.cell].totals;
  if (!r.admitted_before) {
    r.admitted_before = true;
    r.cached_tokens = admission.cached_tokens;
    totals.prompt_tokens_admitted += r.prompt_tokens;
    totals.prefix_hit_tokens += admission.cached_tokens;
  } else if (!admission.swapped_in) {
    totals.refound_tokens += admission.cached_tokens;
  }
}

void Collector::on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) {
  Row& r = row(eviction.request);
  const std::int64_t now = picoseconds(t);
  advance_population(now);
  --resident_;
  FT_CHECK(resident_ >= 0 && r.state != State::free && r.state != State::waiting);
  RequestTotals& totals = cells_[r.cell].totals;
  ++totals.preemptions;
  totals.swaps += eviction.swapped ? 1 : 0;
  ++series_.at(t).preemptions;
  r.frontier = std::max(r.frontier, eviction.context_tokens);
  if (r.state == State::lock_step && emitted == emitted_now(r) + 1) {
    // Its last token is in flight: it takes part in the next decode step and leaves when that has ended.
    r.leaving = true;
    leaving_.push_back(eviction.request);
  } else {
    if (r.state == State::lock_step) FT_CHECK(emitted == emitted_now(r), emitted, emitted_now(r));
    close(r, now);
  }
  ++r.preemptions;
}

void Collector::close(Row& r, std::int64_t t) {
  if (r.state == State::lock_step) {
    leave_lock_step(r, t);
  } else if (r.state == State::catching_up) {
    if (!r.decoding) r.prefill += r.basis;
    r.stalled += (t - r.mark) - r.basis;
  } else {
    (r.preemptions > 0 ? r.preempted : r.queue) += t - r.mark;
  }
  r.state = State::waiting;
  r.mark = t;
}

void Collector::on_token(Handle handle, std::int32_t emitted, Time t) {
  Row& r = row(handle);
  const std::int64_t now = picoseconds(t);
  FT_CHECK(r.state != State::free && r.state != State::lock_step && emitted == r.emitted + 1, index(handle),
           emitted, r.emitted, static_cast<int>(r.state));
  if (r.last_token < 0) {
    r.first_token = now;
  } else {
    const std::int64_t gap = now - r.last_token;
    add_gap(r, gap);
    r.stall_max = std::max(r.stall_max, gap);
  }
  r.last_token = now;
  r.emitted = emitted;
  // Evicted while the step that made this token was in flight: the token counts, the eviction stands.
  if (r.state != State::catching_up) return;
  close(r, now);
  join_lock_step(r, handle, now);
}

void Collector::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  Row& r = row(handle);
  const std::int64_t now = picoseconds(t);
  FT_CHECK(r.state != State::free && how != Ending::rejected, index(handle));
  advance_population(now);
  --in_system_;
  if (r.state != State::waiting && !r.leaving) --resident_;
  close(r, now);
  FT_CHECK(emitted == r.emitted, index(handle), emitted, r.emitted);
  state_.life_ps += now - r.arrival;
  ++series_.at(t).ended;
  RequestRecord record =
      make_record(r, now, how == Ending::finished ? Outcome::finished : Outcome::cancelled);
  r.state = State::free;
  if (how == Ending::finished && options_.delivery == Delivery::batch_end)
    held_.push_back({record, r.cell, r.first_token});
  else
    finish(record, r.cell, r.first_token, now);
}

void Collector::on_batch_end(Time t) {
  for (Held& held : held_) finish(held.record, held.cell, held.first_token, picoseconds(t));
  held_.clear();
}

void Collector::finish_run(Time t) {
  FT_CHECK(!run_ended_ && t != kNever);
  const std::int64_t now = picoseconds(t);
  advance_population(now);
  for (Row& r : rows_) {
    if (r.state == State::free) continue;
    close(r, now);
    state_.life_ps += now - r.arrival;
    RequestRecord record = make_record(r, now, Outcome::unfinished);
    finish(record, r.cell, r.first_token, now);
    r.state = State::free;
  }
  for (Held& held : held_) {
    held.record.outcome = Outcome::unfinished;
    finish(held.record, held.cell, held.first_token, now);
  }
  held_.clear();
  end_ = t;
  run_ended_ = true;
}

}  // namespace foretoken

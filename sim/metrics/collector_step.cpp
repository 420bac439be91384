#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/metrics/collector.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kMaximaKept = 4096;

}  // namespace

void Collector::on_step(const StepRecord& record) {
  const StepPlan& plan = *record.plan;
  const std::int64_t duration = (record.end() - record.begin).count();
  if (record.repeat_first == 0 && !plan.lock_step_changes.empty())
    take_leavers(plan, picoseconds(record.begin));
  if (!plan.chunks.empty()) count_chunks(record, duration);
  if (record.decode_emissions > 0) count_decodes(record, duration);
  count_work(record);
  count_state(record, duration);
  SeriesSample sample;
  sample.begin = record.begin;
  sample.first = record.first;
  sample.growth = record.growth;
  sample.repeats = record.repeats;
  sample.emitted_per_repeat = record.decode_emissions;
  sample.kv_held = record.kv.blocks_held;
  sample.resident = record.resident;
  sample.waiting = record.waiting;
  series_.add(sample);
}

void Collector::on_stepless(const StepPlan& plan, Time t) { take_leavers(plan, picoseconds(t)); }

void Collector::take_leavers(const StepPlan& plan, std::int64_t begin) {
  for (const LockStepChange& change : plan.lock_step_changes) {
    if (change.entered || index(change.request) >= rows_.size()) continue;
    Row& r = rows_[index(change.request)];
    // Ended and preempted rows have left already, and their handle may have a new owner, who cannot be in
    // lock-step yet. What remains is a row that stays resident but gets no token in this step.
    if (r.state != State::lock_step || r.leaving) continue;
    leave_lock_step(r, begin);
    r.state = State::catching_up;
    r.mark = begin;
    r.basis = 0;
    r.decoding = true;
  }
}

void Collector::count_chunks(const StepRecord& record, std::int64_t duration) {
  const std::int64_t begin = picoseconds(record.begin);
  const std::int64_t repeats = record.repeats;
  for (const Chunk& chunk : record.plan->chunks) {
    const std::int64_t tokens = chunk.tokens;
    const std::int64_t context = chunk.context;
    work_.attention_pairs += repeats * (tokens * context + tokens * (tokens + 1) / 2);
    work_.context_tokens_read += repeats * (context + tokens);
    Row& r = row(chunk.request);
    if (r.state == State::admitted) {
      close(r, begin);
      r.state = State::catching_up;
      r.basis = 0;
    }
    // A chunk of a sequence that was evicted or cancelled while it was in flight helps nobody.
    if (r.state == State::catching_up) r.basis += duration;
    FT_CHECK(r.state != State::lock_step, index(chunk.request));
    if (r.state == State::free) continue;
    const std::int32_t computed = chunk.context + chunk.tokens;
    if (r.frontier > chunk.context) {
      cells_[r.cell].totals.recomputed_tokens += std::min(computed, r.frontier) - chunk.context;
    }
    r.frontier = std::max(r.frontier, computed);
  }
}

void Collector::count_decodes(const StepRecord& record, std::int64_t duration) {
  const std::int64_t rows = record.decode_emissions;
  FT_CHECK(rows == lock_rows_, rows, lock_rows_, record.plan->number);
  const std::int64_t first_end = picoseconds(record.begin + record.first);
  const std::int64_t gap = first_end - decode_end_;
  if (rows > pending_rows_) {
    gaps_.add(gap, rows - pending_rows_);
    maxima_.insert(decode_steps_, gap);
    if (splits_gaps())
      for (std::size_t c = 0; c < cell_rows_.size(); ++c)
        if (cell_rows_[c] > 0) cell_gaps_[c].add(gap, cell_rows_[c]);
  }
  if (!pending_.empty()) settle_pending(first_end);
  if (record.repeats > 1) {
    const std::int64_t growth = record.growth.count();
    const std::int64_t second = record.first.count() + growth;
    const std::int64_t last = record.first.count() + growth * (record.repeats - 1);
    gaps_.add_progression(second, growth, record.repeats - 1, rows);
    // Rows join between records only, so of the later repeats the greatest gap stands for all.
    maxima_.insert(decode_steps_ + 1, std::max(second, last));
    if (splits_gaps())
      for (std::size_t c = 0; c < cell_rows_.size(); ++c)
        if (cell_rows_[c] > 0)
          cell_gaps_[c].add_progression(second, growth, record.repeats - 1, cell_rows_[c]);
  }
  decode_steps_ += record.repeats;
  decode_busy_ += duration;
  decode_end_ = picoseconds(record.end());
  if (!leaving_.empty()) settle_leaving(decode_end_);
  if (maxima_.size() > maxima_prune_at_) prune_maxima();
}

void Collector::settle_pending(std::int64_t first_end) {
  for (const Handle handle : pending_) {
    Row& r = rows_[index(handle)];
    // Left before its first decode step, and perhaps here once more under a new owner.
    if (!r.pending) continue;
    r.pending = false;
    const std::int64_t gap = first_end - r.mark;
    add_gap(r, gap);
    r.stall_max = std::max(r.stall_max, gap);
    ++cell_rows_[r.cell];
  }
  pending_.clear();
  pending_rows_ = 0;
}

void Collector::settle_leaving(std::int64_t t) {
  for (const Handle handle : leaving_) {
    Row& r = rows_[index(handle)];
    if (!r.leaving) continue;
    leave_lock_step(r, t);
    r.state = State::waiting;
    r.mark = t;
  }
  leaving_.clear();
}

void Collector::prune_maxima() {
  std::int64_t oldest = decode_steps_;
  for (const Row& r : rows_)
    if (r.state == State::lock_step) oldest = std::min(oldest, r.joined_step);
  maxima_.forget_before(oldest);
  maxima_prune_at_ = std::max(kMaximaKept, 2 * maxima_.size());
}

void Collector::join_lock_step(Row& r, Handle handle, std::int64_t t) {
  r.state = State::lock_step;
  r.mark = t;
  r.basis = decode_busy_;
  r.joined_step = decode_steps_;
  r.pending = true;
  pending_.push_back(handle);
  ++pending_rows_;
  ++lock_rows_;
}

std::int32_t Collector::emitted_now(const Row& r) const {
  return r.pending ? r.emitted : r.emitted + static_cast<std::int32_t>(decode_steps_ - r.joined_step);
}

void Collector::leave_lock_step(Row& r, std::int64_t t) {
  --lock_rows_;
  r.stalled += (t - r.mark) - (decode_busy_ - r.basis);
  if (r.pending) {
    --pending_rows_;
  } else {
    r.emitted = emitted_now(r);
    r.last_token = decode_end_;
    r.stall_max = std::max(r.stall_max, maxima_.greatest_from(r.joined_step + 1));
    --cell_rows_[r.cell];
  }
  r.pending = false;
  r.leaving = false;
}

void Collector::add_gap(const Row& r, std::int64_t gap) {
  gaps_.add(gap);
  if (splits_gaps()) cell_gaps_[r.cell].add(gap);
}

void Collector::count_work(const StepRecord& record) {
  const StepPlan& plan = *record.plan;
  const std::int64_t repeats = record.repeats;
  const std::int64_t grown = repeats * record.repeat_first + repeats * (repeats - 1) / 2;
  const std::int64_t decode_pairs =
      repeats * (plan.decode_context_sum + plan.decode_count + plan.dead_context_sum + plan.dead_rows) +
      grown * (plan.decode_count + plan.dead_rows);
  work_.weight_passes += repeats;
  work_.new_tokens += repeats * (plan.new_tokens - plan.wasted_rows);
  work_.computed_tokens += repeats * (plan.new_tokens + plan.padding_tokens + plan.dead_rows);
  work_.sampled_rows += repeats * plan.sampled_rows;
  work_.attention_pairs += decode_pairs;
  work_.context_tokens_read += decode_pairs;
  work_.padding_tokens += repeats * plan.padding_tokens;
  work_.dead_tokens += repeats * plan.dead_rows;
  work_.wasted_tokens += repeats * plan.wasted_rows;
  if (record.repeat_first > 0) return;
  for (const Copy& copy : plan.copies)
    (copy.to == Tier::host ? work_.swapped_blocks_out : work_.swapped_blocks_in) += copy.blocks;
}

void Collector::count_state(const StepRecord& record, std::int64_t duration) {
  const StepPlan& plan = *record.plan;
  const KvUse& kv = record.kv;
  state_.busy_ps += duration;
  std::int32_t any = 0;
  for (const std::int32_t left_out : plan.left_out) any |= left_out;
  if (any != 0) {
    for (std::size_t reason = 0; reason < kLeftOutReasons; ++reason) {
      if (plan.left_out[reason] == 0) continue;
      limits_.steps[reason] += record.repeats;
      limits_.time_ps[reason] += duration;
      limits_.request_ps[reason] += wide_product(plan.left_out[reason], duration);
    }
  }
  state_.kv_held_ps += wide_product(kv.blocks_held, duration);
  state_.kv_reserved_ps += wide_product(kv.blocks_held - kv.blocks_touched, duration);
  // Sequences that share blocks count their tokens each, so that there may be more tokens than room.
  const std::int64_t slack = kv.blocks_touched * options_.block_tokens - kv.context_tokens;
  if (slack > 0) state_.kv_slack_ps += wide_product(slack, duration);
  const std::int64_t free = kv.blocks_total - kv.blocks_held;
  if (free > kv.largest_free_range)
    state_.kv_cut_off_ps += wide_product(free - kv.largest_free_range, duration);
  state_.kv_blocks_total = kv.blocks_total;
  if (kv.blocks_held > state_.kv_held_max) {
    state_.kv_held_max = kv.blocks_held;
    state_.kv_held_max_at = record.end();
  }
  state_.resident_max = std::max<std::int64_t>(state_.resident_max, record.resident);
  state_.waiting_max = std::max<std::int64_t>(state_.waiting_max, record.waiting);
  swapped_max_ = std::max<std::int64_t>(swapped_max_, record.swapped);
}

}  // namespace foretoken

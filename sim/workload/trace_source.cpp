#include "sim/workload/trace_source.hpp"

#include <cmath>
#include <unordered_set>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

// Engine time ends a little later; the rest is room for the run itself.
constexpr double kPicosecondsMax = 9.0e18;

bool is_inside(const TraceRecord& record, const TraceSpec& trace) {
  const bool ends = trace.to != kForever;
  return record.arrival_ns >= trace.from.count() / 1000 &&
         (!ends || record.arrival_ns < trace.to.count() / 1000);
}

/// Whether some line may hold an `after`; reading lines is far cheaper than parsing them.
bool mentions_after(const std::string& path) {
  LineReader lines(path);
  std::string_view line;
  while (lines.next(line)) {
    if (line.find("\"after\"") != std::string_view::npos) return true;
  }
  return false;
}

std::string place(const TraceInfo& info, const TraceRecord& record) {
  return info.path + ":" + std::to_string(record.line);
}

}  // namespace

double measure_rate_per_s(const TraceSpec& trace) {
  TraceReader reader(trace.path, trace.read);
  TraceRecord record;
  std::int64_t count = 0, first_ns = 0, last_ns = 0;
  while (reader.next(record)) {
    if (!record.after_id.empty() || !is_inside(record, trace)) continue;
    if (count++ == 0) first_ns = record.arrival_ns;
    last_ns = record.arrival_ns;
  }
  if (last_ns <= first_ns) {
    throw input_error(reader.info().path, "at least two arrival times, so that there is a rate to scale",
                      std::to_string(count) + " requests at one time");
  }
  return static_cast<double>(count) / (static_cast<double>(last_ns - first_ns) * 1e-9);
}

TraceSource::TraceSource(const WorkloadSpec& spec)
    : spec_(spec), reader_(spec.trace.path, spec.trace.read), rules_(spec), mix_(spec.classes, spec.seed) {
  if (reader_.info().format == TraceFormat::canonical) read_followers();
  time_scale_ = spec.trace.rate_scale;
  if (spec.trace.rate_per_s > 0.0) {
    if (spec.trace.path == "-")
      throw InputError("standard input cannot be read twice: give rate_scale, or a file");
    time_scale_ = spec.trace.rate_per_s / measure_rate_per_s(spec.trace);
  }
}

void TraceSource::read_followers() {
  if (spec_.trace.path == "-" || !mentions_after(spec_.trace.path)) return;
  TraceReader reader(spec_.trace.path, spec_.trace.read);
  TraceRecord record;
  std::unordered_set<std::string> ids;
  while (reader.next(record)) {
    if (!record.id.empty() && !ids.insert(record.id).second) {
      throw input_error(place(reader.info(), record) + ": /id",
                        "distinct ids, since requests wait for each other", "\"" + record.id + "\" twice");
    }
    if (record.after_id.empty()) continue;
    if (record.after_id == record.id || !ids.contains(record.after_id)) {
      throw input_error(place(reader.info(), record) + ": /after/id", "the id of an earlier request",
                        "\"" + record.after_id + "\"");
    }
    followers_of_[record.after_id].push_back(static_cast<std::uint32_t>(followers_.size()));
    followers_.push_back(record);
  }
}

std::optional<Time> TraceSource::arrival_of(const TraceRecord& record) const {
  const std::int64_t since_ns = pass_begin_ns_ + record.arrival_ns - spec_.trace.from.count() / 1000;
  const double scaled_ps = static_cast<double>(since_ns) * 1000.0 / time_scale_;
  if (scaled_ps > kPicosecondsMax) return std::nullopt;
  // Unscaled times stay exact; scaled ones are rounded to whole nanoseconds, as traces have them.
  if (time_scale_ == 1.0) return Time(Duration(since_ns * 1000));
  return Time(Duration(std::llround(scaled_ps / 1000.0) * 1000));
}

void TraceSource::fill_ahead() {
  while (!ahead_ && !at_end_) {
    if (!reader_.next(record_)) {
      if (begin_next_pass()) continue;
      at_end_ = true;
      return;
    }
    if (!record_.after_id.empty()) {
      if (followers_.empty()) {
        throw input_error(place(reader_.info(), record_),
                          "arrivals, since standard input cannot be read twice",
                          "a request that waits for another one; give a file");
      }
      continue;
    }
    if (!is_inside(record_, spec_.trace)) {
      counts_.outside_window += 1 + followers_in_all(record_.id);
      continue;
    }
    if (pass_count_++ == 0) pass_first_ns_ = record_.arrival_ns;
    pass_last_ns_ = record_.arrival_ns;
    const auto arrival = arrival_of(record_);
    if (!arrival) {
      throw input_error(place(reader_.info(), record_), "arrivals within 104 days of the window's begin",
                        short_number(static_cast<double>(record_.arrival_ns) * 1e-9) +
                            " s; choose a window with from and to, or scale the rate");
    }
    if (*arrival >= after(Time{}, spec_.duration)) {
      at_end_ = true;
      return;
    }
    Offer offer = make_offer(record_, draws_);
    offer.request.arrival = *arrival;
    if (rules_.finish(offer, draws_++, counts_)) ahead_ = offer;
  }
}

bool TraceSource::begin_next_pass() {
  if (passes_done_ + 1 >= spec_.trace.passes || !followers_.empty() || pass_count_ < 2) return false;
  ++passes_done_;
  // The next pass begins one mean gap after the end of this one.
  const std::int64_t span_ns = pass_last_ns_ - pass_first_ns_;
  pass_begin_ns_ += span_ns + span_ns / (pass_count_ - 1);
  pass_count_ = 0;
  reader_ = TraceReader(spec_.trace.path, spec_.trace.read);
  return true;
}

Offer TraceSource::make_offer(const TraceRecord& record, std::uint64_t i) {
  Offer offer;
  Request& request = offer.request;
  request.prompt_tokens = record.input_tokens;
  request.max_new_tokens = record.max_new_tokens;
  request.priority = record.priority;
  request.prefix_hashes = record.prefix_hashes;
  request.hash_block_tokens = record.prefix_hashes.empty() ? 0 : record.block_tokens;
  offer.output_tokens = record.output_tokens;
  offer.patience = record.patience;
  offer.cancel_after = record.cancel_after;
  std::string_view slo_class = record.slo_class, tenant = record.tenant, source = record.source;
  if (!spec_.classes.empty() && slo_class.empty()) {
    const ClassSpec& entry = spec_.classes[mix_.choose(i)];
    slo_class = entry.name;
    if (tenant.empty()) tenant = entry.tenant;
    if (source.empty()) source = entry.source;
    if (request.priority == 0) request.priority = entry.priority;
    if (offer.patience == kForever) offer.patience = entry.patience;
    if (offer.cancel_after == kForever) offer.cancel_after = entry.cancel_after;
  }
  request.slo_class = class_table_.intern(slo_class, names_.slo_classes);
  request.tenant = tenant_table_.intern(tenant, names_.tenants);
  request.source = source_table_.intern(source, names_.sources);
  return offer;
}

std::int64_t TraceSource::followers_in_all(const std::string& id) const {
  const auto found = followers_of_.find(id);
  if (found == followers_of_.end()) return 0;
  // Chains can be as long as the file, so no recursion.
  std::vector<std::uint32_t> open = found->second;
  std::int64_t count = 0;
  while (!open.empty()) {
    const TraceRecord& record = followers_[open.back()];
    open.pop_back();
    ++count;
    if (const auto more = followers_of_.find(record.id); !record.id.empty() && more != followers_of_.end()) {
      open.insert(open.end(), more->second.begin(), more->second.end());
    }
  }
  return count;
}

Time TraceSource::next_time() {
  if (spec_.requests > 0 && counts_.offered >= spec_.requests) return kNever;
  if (!ahead_) fill_ahead();
  const Time streamed = ahead_ ? ahead_->request.arrival : kNever;
  return later_.empty() ? streamed : std::min(streamed, later_.top().arrival);
}

Offer TraceSource::pop() {
  if (!ahead_) fill_ahead();
  Offer offer;
  const std::string* id = nullptr;
  const bool streamed = ahead_ && (later_.empty() || ahead_->request.arrival <= later_.top().arrival);
  if (streamed) {
    offer = *ahead_;
    ahead_.reset();
    // Moving keeps the hashes where they are; only the record that holds them changes.
    std::swap(popped_, record_);
    id = &popped_.id;
  } else {
    FT_CHECK(!later_.empty());
    const TraceRecord& record = followers_[later_.top().row];
    offer = make_offer(record, draws_);
    offer.request.arrival = later_.top().arrival;
    later_.pop();
    id = &record.id;
    // Over-long followers were sorted out before they were put here.
    WorkloadCounts already_counted;
    rules_.finish(offer, draws_++, already_counted);
    counts_.outputs_truncated += already_counted.outputs_truncated;
  }
  offer.request.id = RequestId(static_cast<std::uint32_t>(counts_.offered++));
  if (!followers_.empty() && !id->empty() && followers_of_.contains(*id)) {
    awaited_.emplace(static_cast<std::uint32_t>(offer.request.id), *id);
  }
  return offer;
}

void TraceSource::on_end(RequestId id, Time t, Ending how) {
  const auto awaited = awaited_.find(static_cast<std::uint32_t>(id));
  if (awaited == awaited_.end()) return;
  const std::string parent = std::move(awaited->second);
  awaited_.erase(awaited);
  if (how != Ending::finished) {
    counts_.turns_abandoned += followers_in_all(parent);
    return;
  }
  for (const std::uint32_t row : followers_of_.at(parent)) {
    const TraceRecord& record = followers_[row];
    Offer probe;
    probe.request.prompt_tokens = record.input_tokens;
    probe.output_tokens = record.output_tokens;
    WorkloadCounts counted;
    const bool kept = rules_.finish(probe, 0, counted);
    counts_.over_long += counted.over_long;
    const std::int64_t delay_ps = std::min(record.after_delay_ns, kForever.count() / 1000) * 1000;
    const bool fits =
        Duration(delay_ps) <= kNever - t && t + Duration(delay_ps) < after(Time{}, spec_.duration);
    if (!kept) counts_.turns_abandoned += followers_in_all(record.id);
    if (kept && fits) later_.push({t + Duration(delay_ps), row});
  }
}

std::vector<WorkloadWarning> TraceSource::warnings() const {
  std::vector<WorkloadWarning> found = reader_.warnings();
  if (counts_.over_long > 0) found.push_back(WorkloadWarning::over_long);
  if (counts_.outputs_truncated > 0) found.push_back(WorkloadWarning::outputs_truncated);
  if (counts_.turns_abandoned > 0) found.push_back(WorkloadWarning::turns_abandoned);
  if (spec_.max_new == MaxNewTokens::exact) found.push_back(WorkloadWarning::exact_max_new_tokens);
  return found;
}

}  // namespace foretoken

#include "sim/metrics/step_log.hpp"

#include <array>
#include <charconv>

#include "sim/base/check.hpp"
#include "sim/metrics/plan_hash.hpp"

namespace foretoken {
namespace {

/// Members are appended by hand: a log line is written within a step of the engine, where a tree of values
/// would cost more than the step's own bookkeeping.
void member(std::string& line, std::string_view key, std::int64_t value) {
  std::array<char, 24> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  line.append(",\"").append(key).append("\":").append(digits.data(), result.ptr);
}

void member_unless(std::string& line, std::string_view key, std::int64_t value, std::int64_t usual) {
  if (value != usual) member(line, key, value);
}

std::string hex(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t digit = 16; digit-- > 0; value >>= 4) text[digit] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace

StepLogWriter::StepLogWriter(std::string path, const StepLogHeader& header, std::int64_t flush_lines)
    : file_(std::move(path)), flush_lines_(flush_lines) {
  Json line = Json::object({{"foretoken", "step-log"},
                            {"version", 1},
                            {"config_hash", header.config_hash},
                            {"profile_hash", header.profile_hash},
                            {"columns", header.columns},
                            {"depth", header.depth}});
  if (!header.notes.is_null()) line.set("notes", header.notes);
  line_ = line.dump();
  write_line();
}

void StepLogWriter::write_line() {
  line_ += '\n';
  file_.write(line_);
  if (lines_++ % flush_lines_ == 0) file_.flush();
}

void StepLogWriter::write_arrival(const Offer& offer, Handle handle, Refusal why, Time t) {
  const Request& request = offer.request;
  line_ = "{\"event\":\"arrival\"";
  member(line_, "id", static_cast<std::uint32_t>(request.id));
  member(line_, "arrival", picoseconds(request.arrival));
  member(line_, "visible", picoseconds(t));
  member(line_, "prompt", request.prompt_tokens);
  member(line_, "output", offer.output_tokens);
  member_unless(line_, "max_new", request.max_new_tokens, -1);
  member_unless(line_, "predicted", request.predicted_output_tokens, 0);
  member_unless(line_, "priority", request.priority, 0);
  member_unless(line_, "class", request.slo_class, 0);
  member_unless(line_, "tenant", request.tenant, 0);
  member_unless(line_, "source", request.source, 0);
  member_unless(line_, "patience", offer.patience.count(), kForever.count());
  member_unless(line_, "cancel_after", offer.cancel_after.count(), kForever.count());
  if (handle != kNoHandle) member(line_, "handle", static_cast<std::uint32_t>(handle));
  if (why != Refusal::none)
    line_.append(",\"refused\":")
        .append(why == Refusal::never_fits ? "\"never_fits\"" : "\"exceeds_context\"");
  if (!request.prefix_hashes.empty()) {
    member(line_, "hash_block", request.hash_block_tokens);
    line_ += ",\"hashes\":[";
    for (std::size_t h = 0; h < request.prefix_hashes.size(); ++h)
      line_.append(h == 0 ? "" : ",").append(std::to_string(request.prefix_hashes[h]));
    line_ += ']';
  }
  line_ += '}';
  write_line();
}

void StepLogWriter::on_arrival(Handle handle, const Offer& offer, Time t) {
  if (index(handle) >= ids_.size()) ids_.resize(index(handle) + 1);
  ids_[index(handle)] = offer.request.id;
  write_arrival(offer, handle, Refusal::none, t);
}

void StepLogWriter::on_reject(const Offer& offer, Refusal why, Time t) {
  write_arrival(offer, kNoHandle, why, t);
}

void StepLogWriter::on_step(const StepRecord& record) {
  line_ = "{\"event\":\"step\"";
  member(line_, "n", static_cast<std::int64_t>(record.plan->number));
  line_.append(",\"hash\":\"").append(hex(plan_hash(*record.plan))).append("\"");
  member(line_, "begin", picoseconds(record.begin));
  member(line_, "first", record.first.count());
  member_unless(line_, "growth", record.growth.count(), 0);
  member_unless(line_, "repeats", record.repeats, 1);
  member_unless(line_, "repeat_first", record.repeat_first, 0);
  member_unless(line_, "emitted", record.decode_emissions, 0);
  member(line_, "tokens", record.plan->new_tokens);
  line_ += '}';
  write_line();
}

void StepLogWriter::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  FT_CHECK(index(handle) < ids_.size(), index(handle));
  line_ = "{\"event\":\"end\"";
  member(line_, "id", static_cast<std::uint32_t>(ids_[index(handle)]));
  member(line_, "handle", static_cast<std::uint32_t>(handle));
  if (how == Ending::cancelled) line_ += ",\"how\":\"cancelled\"";
  if (how == Ending::rejected) line_ += ",\"how\":\"rejected\"";
  member_unless(line_, "emitted", emitted, 0);
  member(line_, "t", picoseconds(t));
  line_ += '}';
  write_line();
}

void StepLogWriter::close() {
  FT_CHECK(!is_closed_);
  is_closed_ = true;
  line_ = "{\"event\":\"close\"";
  member(line_, "events", lines_ - 1);
  line_ += '}';
  write_line();
  file_.commit();
}

void ObserverList::on_arrival(Handle handle, const Offer& offer, Time t) {
  for (Observer* observer : observers_) observer->on_arrival(handle, offer, t);
}
void ObserverList::on_reject(const Offer& offer, Refusal why, Time t) {
  for (Observer* observer : observers_) observer->on_reject(offer, why, t);
}
void ObserverList::on_admit(const Admission& admission, Time t) {
  for (Observer* observer : observers_) observer->on_admit(admission, t);
}
void ObserverList::on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) {
  for (Observer* observer : observers_) observer->on_preempt(eviction, emitted, t);
}
void ObserverList::on_step(const StepRecord& record) {
  for (Observer* observer : observers_) observer->on_step(record);
}
void ObserverList::on_token(Handle handle, std::int32_t emitted, Time t) {
  for (Observer* observer : observers_) observer->on_token(handle, emitted, t);
}
void ObserverList::on_end(Handle handle, Ending how, std::int32_t emitted, Time t) {
  for (Observer* observer : observers_) observer->on_end(handle, how, emitted, t);
}
void ObserverList::on_stepless(const StepPlan& plan, Time t) {
  for (Observer* observer : observers_) observer->on_stepless(plan, t);
}
void ObserverList::on_batch_end(Time t) {
  for (Observer* observer : observers_) observer->on_batch_end(t);
}

}  // namespace foretoken

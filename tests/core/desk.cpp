#include "tests/core/desk.hpp"

#include <algorithm>
#include <sstream>

#include "sim/base/json.hpp"
#include "sim/presets.hpp"
#include "tests/support/draw.hpp"

namespace foretoken::test {
namespace {

constexpr const char* kReasons[kLeftOutReasons] = {
    "token_budget",  "sequence_cap", "kv_blocks",         "join_rule", "preemption_freeze",
    "swapped_first", "head_of_line", "prefill_exclusive", "transfer",  "evicted_this_step"};

EngineConfig engine_config(const std::string& engine) {
  const Json json = Json::parse(engine, "engine");
  return read_engine(JsonReader(json, "engine"), {1 << 20, 0, ""});
}

Capacity capacity_of(const EngineConfig& config, std::int64_t host_blocks, bool overlap) {
  return {config.settings.kv_blocks, host_blocks, config.settings.model_tokens_max, overlap};
}

}  // namespace

Desk::Desk(const Policy& policy, const Capacity& capacity, bool fast_paths)
    : scheduler_(std::make_unique<Scheduler>(policy, capacity, SchedulerOptions{true, fast_paths})) {}

Desk::Desk(const std::string& engine, bool fast_paths, std::int64_t host_blocks, bool overlap)
    : Desk(engine_config(engine).settings.policy, capacity_of(engine_config(engine), host_blocks, overlap),
           fast_paths) {}

std::string Desk::submit(const Ask& ask) {
  Request request;
  request.id = RequestId{static_cast<std::uint32_t>(next_ - 'A')};
  request.arrival = Time{Duration{ask.arrival}};
  request.prompt_tokens = ask.prompt_tokens;
  request.max_new_tokens = ask.max_new_tokens;
  request.priority = ask.priority;
  hashes_.push_back(ask.hashes);
  request.prefix_hashes = hashes_.back();
  request.hash_block_tokens = 4;
  const Acceptance acceptance = scheduler_->submit(request);
  if (acceptance.refusal == Refusal::exceeds_context) return "exceeds_context";
  if (acceptance.refusal == Refusal::never_fits) return "never_fits";
  letters_[index(acceptance.handle)] = next_;
  handles_[next_] = acceptance.handle;
  return {next_++};
}

std::string Desk::plan(std::int64_t now) {
  const Decision decision = scheduler_->plan(Time{Duration{now}});
  LAW(scheduler_->audit(), "totals agree with the rows");
  last_ = decision.plan;
  if (decision.plan != nullptr) {
    copies_.insert(copies_.end(), decision.plan->copies.begin(), decision.plan->copies.end());
    return (decision.runs() ? "" : "no step ") + text(*decision.plan);
  }
  constexpr const char* kIdle[] = {"no_work", "join_rule", "in_flight", "transfer"};
  std::string words = std::string("idle ") + kIdle[static_cast<int>(decision.idle_reason)];
  if (decision.idle_until != kNever) words += " until " + std::to_string(picoseconds(decision.idle_until));
  return words;
}

std::string Desk::text(const StepPlan& plan) {
  std::ostringstream out;
  std::string gap;
  const auto part = [&]() -> std::ostream& {
    out << gap;
    gap = " ";
    return out;
  };
  for (const Eviction& e : plan.evictions)
    part() << '-' << letter(e.request) << '(' << e.context_tokens << (e.swapped ? " swapped)" : ")");
  for (const Admission& a : plan.admissions) {
    owners_[a.slot] = letter(a.request);
    part() << '+' << letter(a.request);
    if (a.cached_tokens > 0) out << (a.swapped_in ? "(back " : "(hit ") << a.cached_tokens << ')';
  }
  for (const DecodeRow& row : plan.decodes) part() << owners_.at(row.slot) << '@' << row.context;
  std::int64_t tokens = plan.decode_count;
  for (const Chunk& c : plan.chunks) {
    part() << letter(c.request) << ':' << c.tokens << '@' << c.context << (c.sampled ? "*" : "");
    tokens += c.tokens;
  }
  LAW(static_cast<std::size_t>(plan.decode_count) == plan.decodes.size() && tokens == plan.new_tokens);
  if (plan.padding_tokens > 0) part() << "pad " << plan.padding_tokens;
  if (plan.dead_rows > 0) part() << "dead " << plan.dead_rows << '@' << plan.dead_context_sum;
  bool first = true;
  for (std::size_t r = 0; r < kLeftOutReasons; ++r) {
    if (plan.left_out[r] == 0) continue;
    if (std::exchange(first, false)) out << ';';
    out << ' ' << kReasons[r] << ' ' << plan.left_out[r];
  }
  return out.str();
}

void Desk::commit(const std::string& ended) {
  std::vector<Handle> handles;
  for (const char c : ended) handles.push_back(handles_.at(c));
  scheduler_->commit(true, handles);
  scheduler_->clear_released();
  LAW(scheduler_->audit(), "totals agree with the rows");
}

void Desk::cancel(char letter) {
  scheduler_->cancel(handles_.at(letter));
  LAW(scheduler_->audit(), "totals agree with the rows");
}

void Desk::finish_copy() {
  const Copy copy = copies_.front();
  copies_.erase(copies_.begin());
  scheduler_->transfer_done(copy);
  LAW(scheduler_->audit(), "totals agree with the rows");
}

}  // namespace foretoken::test

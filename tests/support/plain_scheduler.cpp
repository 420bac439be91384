#include "tests/support/plain_scheduler.hpp"

#include <algorithm>
#include <climits>
#include <iterator>
#include <utility>

#include "tests/support/draw.hpp"

namespace foretoken::laws {

PlainScheduler::PlainScheduler(const PlainConfig& config, std::vector<Offer> offers)
    : config_(config), free_(config.blocks) {
  for (Offer& offer : offers) {
    Seq s;
    s.offer = offer;
    const Request& r = offer.request;
    // An endless answer may fill the context; no answer at all is an embedding.
    s.limit = r.max_new_tokens < 0 ? longest() - r.prompt_tokens : r.max_new_tokens;
    if (offer.output_tokens == 0) s.limit = 0;
    s.output = std::min(s.limit, offer.output_tokens);
    const bool is_open = r.max_new_tokens < 0 && offer.output_tokens != 0;
    const int least = r.prompt_tokens + (is_open ? 1 : s.limit);
    s.done = least > longest();  // refused at the door
    seqs_.push_back(s);
  }
}

int PlainScheduler::longest() const {
  // The watermark of V1 does not bind a request that is alone.
  const std::int64_t kept = config_.engine == PlainEngine::vllm_v1 ? 0 : config_.watermark;
  std::int64_t most =
      std::min<std::int64_t>(config_.context_max, (config_.blocks - kept) * config_.block_tokens);
  if (!config_.chunked && config_.budget > 0) most = std::min<std::int64_t>(most, config_.budget);
  return static_cast<int>(most);
}

std::int64_t PlainScheduler::blocks_for(std::int64_t tokens) const {
  return tokens / config_.block_tokens + (tokens % config_.block_tokens > 0 ? 1 : 0);
}

std::int64_t PlainScheduler::coming() const {
  std::int64_t sum = 0;
  for (const PendingFree& f : pending_frees_) sum += f.blocks;
  return sum;
}

void PlainScheduler::give_back(std::int64_t blocks) {
  // A step that is planned or running may still touch them.
  if (planned_ > landed_)
    pending_frees_.push_back({blocks, planned_});
  else
    free_ += blocks;
}

void PlainScheduler::take_arrivals(Time now) {
  for (; arrived_ < seqs_.size() && seqs_[arrived_].offer.request.arrival <= now; ++arrived_)
    if (!seqs_[arrived_].done) waiting_.push_back(static_cast<int>(arrived_));
}

void PlainScheduler::grant(Plan& plan, int id, int tokens) {
  Seq& s = seqs_[static_cast<std::size_t>(id)];
  budget_left_ -= tokens;
  plan.tokens[id] = tokens;
  const bool reaches = tokens == debt(s);
  s.computed += tokens;
  if (!reaches) return;
  if (s.limit > 0) ++s.pending;
  plan.reaching.push_back(id);
}

void PlainScheduler::admit(Plan& plan, std::int64_t blocks) {
  const int id = waiting_.front();
  waiting_.pop_front();
  running_.push_back(id);
  plan.admitted.push_back(id);
  free_ -= blocks;
  seqs_[static_cast<std::size_t>(id)].blocks = blocks;
}

void PlainScheduler::preempt(Plan& plan, int id) {
  Seq& s = seqs_[static_cast<std::size_t>(id)];
  running_.erase(std::find(running_.begin(), running_.end(), id));
  give_back(s.blocks);
  s.blocks = 0;
  s.computed = 0;
  waiting_.push_front(id);
  plan.evicted.push_back(id);
}

bool PlainScheduler::grow(Plan& plan, int id, int tokens) {
  Seq& s = seqs_[static_cast<std::size_t>(id)];
  for (;;) {
    const std::int64_t more = std::max<std::int64_t>(0, blocks_for(s.computed + tokens) - s.blocks);
    if (more <= free_) {
      free_ -= more;
      s.blocks += more;
      return true;
    }
    // Blocks that come back by themselves are waited for, and nobody else gets them.
    if (coming() > 0 && free_ + coming() >= more) {
      is_owed_ = true;
      return false;
    }
    int victim = -1, others = 0;
    for (const int r : running_) {
      // Whoever got its last token in this very plan does not end before the next one.
      if (is_ending(seqs_[static_cast<std::size_t>(r)]) && !plan.tokens.contains(r)) continue;
      victim = r;
      others += r != id;
    }
    // A guard of ours: alone among those that could yield, it waits with what it has for those that are about
    // to end.
    if (victim == id && others == 0) return false;
    preempt(plan, victim);
    if (victim == id) return false;
  }
}

void PlainScheduler::plan_fixed_batch(Plan& plan, Time now) {
  if (running_.empty() && dead_.empty() && !waiting_.empty()) {
    const Time oldest = seqs_[static_cast<std::size_t>(waiting_.front())].offer.request.arrival;
    const Time due = oldest + config_.join_timeout;
    if (static_cast<int>(waiting_.size()) < config_.join_count && now < due) {
      wake_ = due;
      return;
    }
    const std::int64_t each = blocks_for(longest());
    while (!waiting_.empty() && static_cast<int>(running_.size()) < config_.sequences_max && each <= free_)
      admit(plan, each);
  }
  for (const int id : running_) grant(plan, id, debt(seqs_[static_cast<std::size_t>(id)]));
}

void PlainScheduler::plan_orca(Plan& plan) {
  const std::int64_t each = blocks_for(longest());
  while (!waiting_.empty() && static_cast<int>(running_.size()) < config_.sequences_max && each <= free_)
    admit(plan, each);
  for (const int id : running_) grant(plan, id, debt(seqs_[static_cast<std::size_t>(id)]));
}

void PlainScheduler::plan_v0(Plan& plan) {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < config_.sequences_max) {
    const int id = waiting_.front();
    const int tokens = known(seqs_[static_cast<std::size_t>(id)]);
    const std::int64_t blocks = blocks_for(tokens);
    if (tokens > budget_left_ || free_ - blocks < config_.watermark) break;
    admit(plan, blocks);
    grant(plan, id, tokens);
  }
  if (!plan.tokens.empty()) return;
  const std::vector<int> residents = running_;
  for (const int id : residents) {
    if (std::find(running_.begin(), running_.end(), id) == running_.end()) continue;
    if (grow(plan, id, 1)) grant(plan, id, 1);
  }
}

void PlainScheduler::plan_v1(Plan& plan) {
  const std::vector<int> residents = running_;
  for (const int id : residents) {
    if (std::find(running_.begin(), running_.end(), id) == running_.end()) continue;
    const Seq& s = seqs_[static_cast<std::size_t>(id)];
    // Whoever reaches its limit in the step in flight is not scheduled again.
    if (is_ending(s) || budget_left_ == 0) continue;
    int tokens = std::min(debt(s), budget_left_);
    if (config_.chunk_cap > 0) tokens = std::min(tokens, config_.chunk_cap);
    if (!config_.chunked && tokens < debt(s)) continue;
    if (grow(plan, id, tokens)) grant(plan, id, tokens);
  }
  while (plan.evicted.empty() && !is_owed_ && !waiting_.empty() && budget_left_ > 0 &&
         static_cast<int>(running_.size()) < config_.sequences_max) {
    const int id = waiting_.front();
    const Seq& s = seqs_[static_cast<std::size_t>(id)];
    int tokens = std::min(known(s), budget_left_);
    if (config_.chunk_cap > 0) tokens = std::min(tokens, config_.chunk_cap);
    if (!config_.chunked && tokens < known(s)) break;
    const std::int64_t wanted = blocks_for(config_.reserve_full ? known(s) : tokens);
    const std::int64_t spare = running_.empty() ? 0 : config_.watermark;
    if (free_ - wanted < spare) break;
    admit(plan, blocks_for(tokens));
    grant(plan, id, tokens);
  }
}

void PlainScheduler::plan_sarathi(Plan& plan) {
  const std::vector<int> residents = running_;
  for (const bool decodes : {true, false})
    for (const int id : residents) {
      if (std::find(running_.begin(), running_.end(), id) == running_.end()) continue;
      const Seq& s = seqs_[static_cast<std::size_t>(id)];
      if (plan.tokens.contains(id) || (debt(s) == 1) != decodes) continue;
      const int tokens = std::min(debt(s), budget_left_);
      if (tokens > 0 && grow(plan, id, tokens)) grant(plan, id, tokens);
    }
  while (!waiting_.empty() && budget_left_ > 0 && static_cast<int>(running_.size()) < config_.sequences_max) {
    const int id = waiting_.front();
    if (std::find(plan.evicted.begin(), plan.evicted.end(), id) != plan.evicted.end()) break;
    const std::int64_t blocks = blocks_for(known(seqs_[static_cast<std::size_t>(id)]));
    if (free_ - blocks < config_.watermark) break;
    admit(plan, blocks);
    grant(plan, id, std::min(known(seqs_[static_cast<std::size_t>(id)]), budget_left_));
  }
}

PlainScheduler::Plan PlainScheduler::make_plan(Time now) {
  Plan plan;
  budget_left_ = config_.budget > 0 ? config_.budget : INT_MAX / 2;
  is_owed_ = false;
  wake_ = kNever;
  switch (config_.engine) {
    case PlainEngine::fixed_batch: plan_fixed_batch(plan, now); break;
    case PlainEngine::orca: plan_orca(plan); break;
    case PlainEngine::vllm_v0: plan_v0(plan); break;
    case PlainEngine::vllm_v1: plan_v1(plan); break;
    case PlainEngine::sarathi: plan_sarathi(plan); break;
  }
  if (!plan.tokens.empty()) ++planned_;
  return plan;
}

void PlainScheduler::end(int id) {
  Seq& s = seqs_[static_cast<std::size_t>(id)];
  s.done = true;
  std::erase(waiting_, id);
  const bool was_running = std::erase(running_, id) > 0;
  if (!was_running) return;
  if (config_.engine == PlainEngine::fixed_batch) {
    // A batch keeps its memory until its last sequence ends.
    dead_.push_back(id);
    if (!running_.empty()) return;
    for (const int d : dead_) give_back(seqs_[static_cast<std::size_t>(d)].blocks);
    dead_.clear();
    return;
  }
  give_back(s.blocks);
}

void PlainScheduler::land(const Plan& plan) {
  ++landed_;
  std::erase_if(pending_frees_, [&](const PendingFree& f) {
    if (f.until <= landed_) free_ += f.blocks;
    return f.until <= landed_;
  });
  for (const auto& [id, tokens] : plan.tokens) {
    Seq& s = seqs_[static_cast<std::size_t>(id)];
    const bool reaches = std::find(plan.reaching.begin(), plan.reaching.end(), id) != plan.reaching.end();
    if (reaches && s.limit > 0) {
      --s.pending;
      ++s.emitted;
    }
    if (reaches && !s.done && s.emitted == s.output) end(id);
  }
}

std::vector<PlainStep> PlainScheduler::run() {
  std::vector<PlainStep> steps;
  Plan next;
  PlainStep step;
  Time now{};
  for (int turns = 0;; ++turns) {
    LAW(turns < 200000, "the plain twin hangs");
    take_arrivals(now);
    if (next.tokens.empty()) next = make_plan(now);
    const auto alive = [&](int id) { return !seqs_[static_cast<std::size_t>(id)].done; };
    std::copy_if(next.evicted.begin(), next.evicted.end(), std::back_inserter(step.evicted), alive);
    std::copy_if(next.admitted.begin(), next.admitted.end(), std::back_inserter(step.admitted), alive);
    if (next.tokens.empty()) {
      if (!next.evicted.empty()) continue;
      const Time arrival = arrived_ < seqs_.size() ? seqs_[arrived_].offer.request.arrival : kNever;
      now = std::min(arrival, wake_);
      if (now == kNever) return steps;
      continue;
    }
    const Plan running = std::exchange(next, Plan{});
    step.begin = now;
    step.tokens = running.tokens;
    std::int64_t tokens = 0;
    for (const auto& [id, n] : running.tokens) tokens += n;
    steps.push_back(std::exchange(step, PlainStep{}));
    if (config_.depth == 1) next = make_plan(now);
    now += config_.step_price + config_.token_price * tokens;
    land(running);
    if (next.tokens.empty() && !next.evicted.empty()) {
      std::copy_if(next.evicted.begin(), next.evicted.end(), std::back_inserter(step.evicted), alive);
      next = Plan{};
    }
  }
}

}  // namespace foretoken::laws

#include "tests/property/fault_rows.hpp"

namespace foretoken::laws {
namespace {

/// The scheduler goes by another policy than the audit.
Fault ruled_by(const std::function<void(Policy&)>& change) {
  Fault fault;
  fault.believed = [change](Setup& setup) { change(setup.policy); };
  return fault;
}

Fault in_plans(const std::function<void(EditedPlan&)>& change) {
  Fault fault;
  fault.plan = change;
  return fault;
}

/// Six requests at once, each with more prompt than a step has tokens.
Setup crowded() {
  Setup setup = roomy();
  for (Item& item : setup.items) {
    item.offer.request.arrival = Time{};
    item.offer.request.prompt_tokens = 20;
  }
  return setup;
}

void total_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("4 I3", "the budget is that of another engine", "over budget", crowded(),
                           ruled_by([](Policy& p) { p.batch_tokens_max = 40; })));
  Setup capped = crowded();
  capped.policy.chunk_tokens_max = 8;
  rows.push_back(audit_row("I3", "a chunk passes the cap on chunks", "policy_.chunk_tokens_max == 0", capped,
                           ruled_by([](Policy& p) { p.chunk_tokens_max = 9; })));
  rows.push_back(audit_row("4 I4", "a sequence more than the cap allows", "more residents than slots",
                           crowded(), ruled_by([](Policy& p) { p.sequences_max = 5; })));
  rows.push_back(audit_row("4", "the total of tokens is wrong", "tokens == plan.new_tokens", roomy(),
                           in_plans([](EditedPlan& e) { ++e.plan.new_tokens; })));
  rows.push_back(audit_row("4", "the sum of contexts is wrong", "sum == plan.decode_context_sum", roomy(),
                           in_plans([](EditedPlan& e) { ++e.plan.decode_context_sum; })));
  rows.push_back(audit_row("4", "a row of the head is not counted", "sampled == plan.sampled_rows", roomy(),
                           in_plans([](EditedPlan& e) { --e.plan.sampled_rows; })));
}

void grant_rows(std::vector<FaultRow>& rows) {
  rows.push_back(audit_row("4 I5", "one slot gets two tokens", "two grants for one slot", roomy(),
                           in_plans([](EditedPlan& e) {
                             if (e.decodes.empty()) return;
                             e.decodes.push_back(e.decodes.back());
                             ++e.plan.decode_count;
                           })));
  rows.push_back(audit_row("4 I5", "one slot gets two chunks", "two grants for one slot", roomy(),
                           in_plans([](EditedPlan& e) {
                             if (!e.chunks.empty()) e.chunks.push_back(e.chunks.back());
                           })));
  rows.push_back(audit_row("4 I5", "a chunk is longer than what is left", "chunk.tokens <= debt", roomy(),
                           in_plans([](EditedPlan& e) {
                             for (Chunk& chunk : e.chunks) ++chunk.tokens;
                           })));
  rows.push_back(
      audit_row("I5", "a chunk is empty", "chunk.tokens >= 1", roomy(), in_plans([](EditedPlan& e) {
                  for (Chunk& chunk : e.chunks) chunk.tokens = 0;
                })));
  rows.push_back(audit_row("I5", "a victim is left in the batch", "granted without being resident", scarce(),
                           in_plans([](EditedPlan& e) {
                             for (const Eviction& eviction : e.evictions)
                               e.chunks.push_back({eviction.slot, eviction.request, 1, 0, false});
                           })));
  Setup batches = crowded();
  batches.policy.join = Join::when_empty;
  rows.push_back(audit_row(
      "I5", "a request joins a batch that runs", "joined a running batch",
      [&] {
        batches.items[5].offer.request.arrival = Time{Duration{3000}};
        batches.policy.sequences_max = 8;
        return batches;
      }(),
      ruled_by([](Policy& p) { p.join = Join::any; })));
}

void place_rows(std::vector<FaultRow>& rows) {
  Setup cached = roomy();
  cached.policy.prefix_cache = true;
  rows.push_back(audit_row("I6", "blocks are believed to hold more than they do",
                           "no place for what is computed", cached,
                           ruled_by([](Policy& p) { p.block_tokens = 8; })));
  for (Item& item : cached.items) {
    item.offer.request.hash_block_tokens = 4;
    const auto text = static_cast<std::uint64_t>(&item - cached.items.data());
    item.hashes = {text * 3 + 1, text * 3 + 2, text * 3 + 3};
  }
  rows.push_back(audit_row("3 I2", "a block that is in use is given to another text",
                           "one block with two texts", cached, [] {
                             Fault fault;
                             fault.believed = [](Setup& setup) {
                               for (Item& item : setup.items) item.hashes = setup.items[0].hashes;
                             };
                             return fault;
                           }()));
  Setup whole = cached;
  for (Item& item : whole.items) {
    item.offer.request.prompt_tokens = 12;
    item.hashes = whole.items[0].hashes;
  }
  rows.push_back(audit_row("I5", "a prefix hit leaves no token to compute",
                           "a.cached_tokens < a.known_tokens", whole, [] {
                             Fault fault;
                             fault.event = [](Event& e) {
                               if (e.kind == Event::Kind::admit) e.admission.cached_tokens = 12;
                               return 1;
                             };
                             return fault;
                           }()));
}

/// Invents the eviction of a request that has just got its first token.
Fault inventing_an_eviction() {
  Fault fault;
  fault.invented = [](const Event& e) {
    if (e.kind != Event::Kind::end || e.handle != Handle{0}) return std::vector<Event>{};
    Event eviction;
    eviction.kind = Event::Kind::preempt;
    eviction.handle = Handle{0};
    eviction.eviction = {Slot{0}, Handle{0}, 14, false};
    eviction.emitted = 5;
    eviction.at = e.at;
    return std::vector<Event>{eviction};
  };
  return fault;
}

void eviction_rows(std::vector<FaultRow>& rows) {
  Setup reserving = roomy();
  reserving.policy.reserve = Reserve::prompt_and_max;
  reserving.policy.take = Take::reserved;
  reserving.policy.preempt = PreemptMode::none;
  rows.push_back(audit_row("I7", "a request that was promised its place is evicted",
                           "promised not to preempt", reserving, inventing_an_eviction()));
  rows.push_back(audit_row(
      "I12", "a victim comes back in the step that evicted it", "admitted in the step that evicted it",
      scarce(), in_plans([](EditedPlan& e) {
        for (const Eviction& eviction : e.evictions)
          e.admissions.push_back({eviction.slot, eviction.request, nullptr, 0, 0, false, RequestId{}});
      })));
  Setup frozen = scarce();
  frozen.policy.sequences_max = 8;
  frozen.policy.order = Order::shortest_prompt;
  for (int i = 0; i < 40; ++i) {
    Item late = frozen.items[0];
    late.offer.request.arrival = Time{Duration{2000 + i * 400}};
    late.offer.request.prompt_tokens = late.offer.output_tokens = 1;
    frozen.items.push_back(late);
  }
  rows.push_back(audit_row("I12", "a newcomer takes what a victim gave up for another one",
                           "admitted in a step that preempted", frozen,
                           ruled_by([](Policy& p) { p.freeze_after_preemption = false; })));
  Setup enough = scarce();
  enough.capacity.kv_blocks = 24;
  rows.push_back(
      audit_row("I12", "somebody is evicted though all had room", "evicted for nobody", enough, [] {
        Fault fault;
        fault.believed = [](Setup& setup) { setup.capacity.kv_blocks = 14; };
        fault.event = [](Event& e) {
          e.record.kv.blocks_total = 24;
          return 1;
        };
        return fault;
      }()));
  rows.push_back(audit_row(
      "I12", "the wrong one yields", "another one should have yielded",
      [] {
        Setup setup = scarce();
        setup.items[0].offer.request.priority = 3;
        return setup;
      }(),
      ruled_by([](Policy& p) { p.victim = Victim::lowest_priority; })));
}

}  // namespace

std::vector<FaultRow> plan_rows() {
  std::vector<FaultRow> rows;
  total_rows(rows);
  grant_rows(rows);
  place_rows(rows);
  eviction_rows(rows);
  return rows;
}

}  // namespace foretoken::laws

#pragma once
#include <cstdint>
#include <vector>

#include "sim/core/observer.hpp"

namespace foretoken::test {

/// Calls an observer by hand; times are in picoseconds, one step after the other.
struct HandRun {
  Observer& observer;
  std::int64_t now = 0;
  std::uint64_t plans = 0;
  KvUse kv{100, 0, 0, 0, 0, 100};

  static Time at(std::int64_t ps) { return Time(Duration(ps)); }
  static Handle handle(std::uint32_t h) { return static_cast<Handle>(h); }

  void arrive(std::uint32_t h, std::int64_t t, std::int32_t prompt, std::int32_t output,
              std::uint16_t slo_class = 0) {
    Offer offer;
    offer.request.id = static_cast<RequestId>(next_id++);
    offer.request.arrival = at(t);
    offer.request.prompt_tokens = prompt;
    offer.request.slo_class = slo_class;
    offer.output_tokens = output;
    observer.on_arrival(handle(h), offer, at(now > t ? now : t));
    if (t > now) now = t;
  }
  void admit(std::uint32_t h, std::int32_t known) {
    observer.on_admit({static_cast<Slot>(h), handle(h), nullptr, known, 0, false}, at(now));
  }
  /// A step of the given chunks and decode rows.
  void step(const std::vector<Chunk>& chunks, std::int32_t rows, std::int64_t duration,
            std::int64_t padding = 0, std::int64_t repeats = 1, std::int32_t dead = 0) {
    StepPlan plan;
    plan.number = plans++;
    plan.chunks = chunks;
    plan.decode_count = rows;
    plan.new_tokens = rows;
    for (const Chunk& chunk : chunks) plan.new_tokens += chunk.tokens;
    plan.padding_tokens = padding;
    plan.dead_rows = dead;
    StepRecord record;
    record.plan = &plan;
    record.begin = at(now);
    record.first = Duration(duration);
    record.repeats = repeats;
    record.decode_emissions = rows;
    record.resident = rows + static_cast<std::int32_t>(chunks.size());
    record.kv = kv;
    observer.on_step(record);
    now += duration * repeats;
  }
  /// A whole prompt alone, and its first token.
  void prefill(std::uint32_t h, std::int32_t prompt, std::int64_t duration, std::int32_t rows = 0) {
    admit(h, prompt);
    step({chunk(h, prompt)}, rows, duration);
    token(h, 1);
  }
  static Chunk chunk(std::uint32_t h, std::int32_t tokens, std::int32_t context = 0) {
    return {static_cast<Slot>(h), handle(h), tokens, context, true};
  }
  void token(std::uint32_t h, std::int32_t emitted) { observer.on_token(handle(h), emitted, at(now)); }
  void end(std::uint32_t h, std::int32_t emitted, Ending how = Ending::finished) {
    observer.on_end(handle(h), how, emitted, at(now));
  }

  std::uint32_t next_id = 0;
};

}  // namespace foretoken::test

#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/observer.hpp"
#include "sim/core/random.hpp"

namespace foretoken::test {

/// Draws small integers from one stream.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : stream_(seed, 77) {}
  std::int64_t between(std::int64_t low, std::int64_t high) { return stream_.integer(next_++, low, high); }
  bool chance(double p) { return stream_.uniform(next_++) < p; }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// What a drawn run does.
struct FakeOptions {
  std::int64_t turns = 200;
  /// Report repeats of a window as one record; off, one record each, with everything else the same.
  bool merge = true;
  int classes = 1;
  double preempt = 0.1;
  double starve = 0.05;
  double cancel = 0.02;
  /// Preempt rows whose step is in flight, as a scheduler that plans ahead does.
  double preempt_in_flight = 0.05;
  bool batch_ends = false;
};

/// Plays an engine that keeps the Observer's contract and otherwise does as it likes: admits, chunks,
/// starves, preempts, swaps, cancels and idles at random.
class FakeRun {
 public:
  FakeRun(std::uint64_t seed, FakeOptions options) : draw_(seed), options_(options) {}
  /// Runs and returns the time of the last event.
  Time run(Observer& observer);

 private:
  enum class State { waiting, catching_up, lock_step };
  struct Sequence {
    Offer offer;
    State state = State::waiting;
    Slot slot = kNoSlot;
    std::int32_t emitted = 0;
    std::int32_t computed = 0;
    bool swapped = false;
    bool evicted_now = false;
    std::int32_t known() const { return offer.request.prompt_tokens + emitted; }
    std::int32_t left() const { return offer.output_tokens - emitted; }
  };

  void arrive(Observer& observer);
  void decide(Observer& observer);
  std::vector<Chunk> draw_chunks(std::vector<Handle>& rows);
  void step(Observer& observer);
  void preempt(Observer& observer, Handle handle, std::int32_t emitted, bool keep_slot);
  void finish(Observer& observer, Handle handle, Ending how);
  void emit_records(Observer& observer, StepPlan& plan, std::int64_t repeats, std::int32_t rows);
  std::vector<Handle> in_state(State state) const;

  Draw draw_;
  FakeOptions options_;
  std::int64_t now_ = 0;
  std::uint32_t next_id_ = 0;
  std::uint64_t plans_ = 0;
  std::vector<Handle> free_;
  std::uint32_t handles_ = 0;
  std::map<Handle, Sequence> alive_;
  std::vector<Admission> admissions_;
  std::vector<Eviction> evictions_;
  std::vector<LockStepChange> changes_;
};

}  // namespace foretoken::test

#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "sim/core/observer.hpp"
#include "sim/core/policy.hpp"
#include "sim/metrics/request_record.hpp"
#include "sim/metrics/wide.hpp"

namespace foretoken::test {

/// The plain way to measure: every token of every request has its time, and every stretch of time is booked
/// request by request. Slow, and what the collector must agree with.
class Twin final : public Observer {
 public:
  explicit Twin(Delivery delivery) : delivery_(delivery) {}
  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission& admission, Time t) override;
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override;
  void on_step(const StepRecord& record) override;
  void on_token(Handle handle, std::int32_t emitted, Time t) override;
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_batch_end(Time t) override;
  void finish_run(Time t);

  std::map<std::uint32_t, RequestRecord> records;  // by id
  std::vector<std::int64_t> gaps;
  std::map<int, std::vector<std::int64_t>> class_gaps;
  std::int64_t recomputed = 0;
  Wide life_sum = 0;

 private:
  struct Life {
    Offer offer;
    std::vector<std::int64_t> tokens;
    std::vector<char> was_computed;  // by position in the sequence
    std::int64_t booked_until = 0;
    std::int64_t queue = 0, preempted = 0, prefill = 0, decode = 0, stalled = 0;
    std::int32_t cached = 0;
    std::int32_t preemptions = 0;
    bool admitted = false;  // resident or about to be
    bool admitted_before = false;
    bool started = false;  // resident, and computed something since the admission
    bool lock_step = false;
    bool leaves_after_step = false;
    bool decoding = false;
  };
  void book(Life& life, std::int64_t until);
  void token(Life& life, std::int64_t t);
  RequestRecord record_of(const Life& life, std::int64_t t, Outcome outcome) const;
  void deliver(RequestRecord record, const std::vector<std::int64_t>& tokens, std::int64_t t);

  struct Held {
    RequestRecord record;
    std::vector<std::int64_t> tokens;
  };
  Delivery delivery_;
  std::map<Handle, Life> alive_;
  std::vector<Held> held_;
};

}  // namespace foretoken::test

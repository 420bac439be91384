#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "models/step_features.hpp"
#include "sim/core/observer.hpp"
#include "sim/metrics/step_log.hpp"

namespace foretoken {

/// What a run leaves for replays and for the judgement of step costs: its arrivals, its steps with the hashes
/// of their plans, and what each step's price depends on. Meant for runs that go step by step.
class RunRecorder final : public Observer {
 public:
  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission&, Time) override {}
  void on_preempt(const Eviction&, std::int32_t, Time) override {}
  void on_step(const StepRecord& record) override;
  void on_token(Handle, std::int32_t, Time) override {}
  void on_end(Handle, Ending, std::int32_t, Time) override {}
  void on_batch_end(Time) override {}

  const std::vector<LoggedArrival>& arrivals() const { return arrivals_; }
  const std::vector<LoggedStep>& steps() const { return steps_; }
  /// One per step.
  const std::vector<StepShape>& shapes() const { return shapes_; }

 private:
  std::vector<LoggedArrival> arrivals_;
  std::deque<std::vector<std::uint64_t>> hashes_;
  std::vector<LoggedStep> steps_;
  std::vector<StepShape> shapes_;
  std::vector<ChunkFeatures> chunks_;
};

}  // namespace foretoken

#pragma once
#include <memory>
#include <vector>

#include "models/cost.hpp"
#include "sim/core/executor.hpp"

namespace foretoken {

/// What a plan's price depends on, for a cost. `chunks` is the storage that the features view.
StepFeatures features_of(const StepPlan& plan, std::vector<ChunkFeatures>& chunks);

/// Prices steps instead of running them, and foretells whole windows of identical decode steps at once.
class SimExecutor final : public Executor {
 public:
  /// `transfers_overlap` is the property of the host link that the scheduler was told, too.
  explicit SimExecutor(std::unique_ptr<StepCost> cost, bool transfers_overlap = false)
      : cost_(std::move(cost)), transfers_overlap_(transfers_overlap) {}

  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  Time transfer_end(const Copy& copy, Time begin) override;
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}

  /// The cost, for its counters and its grade.
  const StepCost& cost() const { return *cost_; }

 private:
  std::unique_ptr<StepCost> cost_;
  bool transfers_overlap_;
  std::vector<ChunkFeatures> chunks_;
  Time link_free_{};
};

}  // namespace foretoken

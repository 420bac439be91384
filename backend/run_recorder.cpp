#include "backend/run_recorder.hpp"

#include "sim/metrics/plan_hash.hpp"
#include "sim/sim_executor.hpp"

namespace foretoken {

void RunRecorder::on_arrival(Handle handle, const Offer& offer, Time t) {
  LoggedArrival arrival;
  arrival.offer = offer;
  arrival.visible = t;
  arrival.handle = handle;
  // The source's view of the hashes ends with its next call.
  const auto hashes = offer.request.prefix_hashes;
  hashes_.emplace_back(hashes.begin(), hashes.end());
  arrival.offer.request.prefix_hashes = hashes_.back();
  arrivals_.push_back(arrival);
}

void RunRecorder::on_reject(const Offer& offer, Refusal why, Time t) {
  on_arrival(kNoHandle, offer, t);
  arrivals_.back().refusal = why;
}

void RunRecorder::on_step(const StepRecord& record) {
  LoggedStep step;
  step.number = record.plan->number;
  step.plan_hash = plan_hash(*record.plan);
  step.begin = record.begin;
  step.first = record.first;
  step.growth = record.growth;
  step.repeats = record.repeats;
  step.repeat_first = record.repeat_first;
  step.decode_emissions = record.decode_emissions;
  step.new_tokens = record.plan->new_tokens;
  steps_.push_back(step);
  shapes_.push_back(to_shape(features_of(*record.plan, chunks_)));
}

}  // namespace foretoken

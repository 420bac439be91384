#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "sim/core/observer.hpp"

namespace foretoken {

/// What a step log says about its run.
struct StepLogHeader {
  std::string config_hash;   ///< SHA-256 of the resolved configuration, hexadecimal.
  std::string profile_hash;  ///< Of the cost profile; empty when the steps were run and not priced.
  bool columns = false;      ///< Whether plans had decode rows, which are then in the hashes.
  std::int32_t depth = 0;
  /// Anything else the writer wants to keep.
  Json notes;
  friend bool operator==(const StepLogHeader&, const StepLogHeader&) = default;
};

/// A step (or repeats of it) that ended.
struct LoggedStep {
  std::uint64_t number = 0;
  std::uint64_t plan_hash = 0;
  Time begin{};
  Duration first{};
  Duration growth{};
  std::int64_t repeats = 1;
  std::int64_t repeat_first = 0;
  std::int32_t decode_emissions = 0;
  std::int64_t new_tokens = 0;
  Time end() const { return begin + first * repeats + growth * (repeats * (repeats - 1) / 2); }
  friend bool operator==(const LoggedStep&, const LoggedStep&) = default;
};

/// A request at the door.
struct LoggedArrival {
  /// `request.prefix_hashes` views the log's own copy.
  Offer offer;
  /// When the engine saw it: at or after `offer.request.arrival`.
  Time visible{};
  Handle handle = kNoHandle;  ///< kNoHandle when it was refused.
  Refusal refusal = Refusal::none;
};

/// A request's end.
struct LoggedEnd {
  RequestId id{};
  Handle handle{};
  Ending how{};
  std::int32_t emitted = 0;
  Time t{};
  friend bool operator==(const LoggedEnd&, const LoggedEnd&) = default;
};

/// The order of events in a log, as the Observer saw them.
enum class LogEvent : std::uint8_t { arrival, step, end };

/// A whole step log.
struct StepLog {
  StepLogHeader header;
  std::vector<LoggedArrival> arrivals;
  std::vector<LoggedStep> steps;
  std::vector<LoggedEnd> ends;
  /// One per event: with the three lists, the calls in their order.
  std::vector<LogEvent> order;
  /// The writer was cut off: the last line was not whole and is not here, or the closing line is missing.
  bool cut = false;
  /// Owns the prefix hashes of the arrivals.
  std::deque<std::vector<std::uint64_t>> hashes;
};

/// Writes a step log as JSON lines while the run goes on: header, then arrivals, steps and endings as they
/// come, then a closing line. Flushed every `flush_lines` lines, so that the draft beside the file can be
/// followed; the file itself appears with `close`, whole.
class StepLogWriter final : public Observer {
 public:
  /// Creates the draft; a DeviceError names path and reason where that fails, here and in every write.
  StepLogWriter(std::string path, const StepLogHeader& header, std::int64_t flush_lines = 64);
  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission&, Time) override {}
  void on_preempt(const Eviction&, std::int32_t, Time) override {}
  void on_step(const StepRecord& record) override;
  void on_token(Handle, std::int32_t, Time) override {}
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_batch_end(Time) override {}

  /// Writes the closing line and puts the file in its place; without it nothing is left behind.
  void close();

 private:
  void write_arrival(const Offer& offer, Handle handle, Refusal why, Time t);
  void write_line();

  AtomicFile file_;
  bool is_closed_ = false;
  std::int64_t flush_lines_;
  std::int64_t lines_ = 0;
  std::string line_;
  std::vector<RequestId> ids_;  // by handle
};

/// Reads a step log; an InputError names file and line for anything malformed but a last line that was cut
/// off.
StepLog read_step_log(const std::string& path);

/// The first difference between two runs' plans.
struct PlanDifference {
  bool equal = true;
  std::int64_t compared = 0;  ///< Steps that agree before it.
  std::string text;           ///< What differs, for people; empty when equal.
};
/// Compares the plans of two logs one by one (hash and number of tokens), and how many there are.
PlanDifference compare_plans(const std::vector<LoggedStep>& a, const std::vector<LoggedStep>& b);

/// Passes every call on to several observers, in order.
class ObserverList final : public Observer {
 public:
  explicit ObserverList(std::vector<Observer*> observers) : observers_(std::move(observers)) {}
  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer& offer, Refusal why, Time t) override;
  void on_admit(const Admission& admission, Time t) override;
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override;
  void on_step(const StepRecord& record) override;
  void on_token(Handle handle, std::int32_t emitted, Time t) override;
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_stepless(const StepPlan& plan, Time t) override;
  void on_batch_end(Time t) override;

 private:
  std::vector<Observer*> observers_;
};

}  // namespace foretoken

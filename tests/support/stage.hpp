#pragma once
#include <array>
#include <cstdint>
#include <queue>
#include <string>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/observer.hpp"
#include "sim/core/scheduler.hpp"
#include "sim/fleet/driver.hpp"
#include "tests/support/setup.hpp"

namespace foretoken::laws {

/// The items of a setup as a source: open-loop ones at their times, the others after the ends they wait for.
class ListSource final : public Source {
 public:
  explicit ListSource(const std::vector<Item>& items);
  ListSource(const ListSource&) = delete;
  Time next_time() override;
  Offer pop() override;
  void on_end(RequestId id, Time t, Ending how) override;
  /// The item that became this request.
  const Item& item(RequestId id) const { return (*items_)[popped_[static_cast<std::size_t>(id)]]; }
  /// Position of that item.
  std::size_t position(RequestId id) const { return popped_[static_cast<std::size_t>(id)]; }
  /// How many requests were handed out.
  std::size_t count() const { return popped_.size(); }

 private:
  struct Next {
    Time at{};
    std::size_t item = 0;
    friend bool operator>(const Next& a, const Next& b) {
      return a.at != b.at ? a.at > b.at : a.item > b.item;
    }
  };
  const std::vector<Item>* items_;
  std::vector<std::vector<std::size_t>> followers_;  // by item
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next_;
  std::vector<std::size_t> popped_;
};

/// What one step with these parts costs, by the prices of a setup.
Duration price_of(const Prices& prices, const StepPlan& plan, bool copies_are_serial);

/// Prices plans linearly. A run of more than `steps_max` launches is broken: nothing that is drawn takes so
/// long.
class PricedExecutor final : public Executor {
 public:
  explicit PricedExecutor(const Setup& setup, std::int64_t steps_max = 60000)
      : prices_(setup.prices), overlap_(setup.capacity.transfers_overlap), steps_left_(steps_max) {}
  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  Time transfer_end(const Copy& copy, Time begin) override;
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}

 private:
  Prices prices_;
  bool overlap_;
  std::int64_t steps_left_;
  Time link_free_{};
};

/// What happened in a run, step by step, whatever way it was taken: windows are laid out into their repeats,
/// and requests appear by id. Arrivals and refusals are left out, since a window that they cut is reported
/// after them.
class EventLog final : public Observer {
 public:
  using Entry = std::array<std::int64_t, 9>;
  /// `names`: what to call the requests by id; empty: by their ids.
  explicit EventLog(std::vector<std::int64_t> names = {}) : names_(std::move(names)) {}
  void on_arrival(Handle handle, const Offer& offer, Time t) override;
  void on_reject(const Offer&, Refusal, Time) override {}
  void on_admit(const Admission& admission, Time t) override;
  void on_preempt(const Eviction& eviction, std::int32_t emitted, Time t) override;
  void on_step(const StepRecord& record) override;
  void on_token(Handle handle, std::int32_t emitted, Time t) override;
  void on_end(Handle handle, Ending how, std::int32_t emitted, Time t) override;
  void on_batch_end(Time t) override;

  const std::vector<Entry>& entries() const { return entries_; }
  /// Durations of the steps, in order.
  const std::vector<Duration>& durations() const { return durations_; }
  /// The entries with all times multiplied, then shifted.
  std::vector<Entry> moved(std::int64_t factor, Duration shift) const;

 private:
  void add(char kind, std::int64_t begin, std::int64_t t, std::initializer_list<std::int64_t> values);
  std::int64_t id(Handle handle) const { return ids_[index(handle)]; }
  std::vector<std::int64_t> names_;  // by id
  std::vector<std::int64_t> ids_;    // by handle
  std::vector<Entry> entries_;
  std::vector<Duration> durations_;
};

/// Tells two observers.
class Both final : public Observer {
 public:
  Both(Observer& first, Observer& second) : first_(first), second_(second) {}
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
  Observer& first_;
  Observer& second_;
};

/// Breaks with the first difference of two logs.
void require_equal(const std::vector<EventLog::Entry>& a, const std::vector<EventLog::Entry>& b,
                   const char* what);

/// One engine with its scheduler, its source and a priced executor, ready to run once.
class Stage {
 public:
  explicit Stage(const Setup& setup);
  /// Runs to the end with these in place; the priced executor is `executor`.
  RunResult run(Executor& used, Observer& observer);

  Setup setup;
  Scheduler scheduler;
  ListSource source;
  PricedExecutor executor;
};

/// The log of a whole run.
EventLog log_of(const Setup& setup);

/// Gives the launched steps the durations that another run had, one step at a time.
class ReplayExecutor final : public Executor {
 public:
  /// `joins`: as a device whose steps end when somebody waits for them; otherwise ends are known at once.
  ReplayExecutor(const Setup& setup, std::vector<Duration> durations, bool joins)
      : priced_(setup), durations_(std::move(durations)), joins_(joins) {}
  Window launch(const StepPlan& plan, Time begin) override;
  Time complete(const StepPlan& plan, const Window& window) override;
  Time transfer_end(const Copy& copy, Time begin) override { return priced_.transfer_end(copy, begin); }
  void on_accept(Handle, const Offer&) override {}
  void on_release(Handle) override {}

 private:
  PricedExecutor priced_;
  std::vector<Duration> durations_;
  std::size_t next_ = 0;
  bool joins_;
};

}  // namespace foretoken::laws

#include "sim/fleet/driver.hpp"

#include <algorithm>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/fleet/event_queue.hpp"

namespace foretoken {
namespace {

class Driver {
 public:
  Driver(Source& source, std::span<Engine* const> engines, Router* router)
      : source_(source), engines_(engines), router_(router) {
    FT_CHECK(!engines.empty() && (router != nullptr || engines.size() == 1));
    for (std::size_t i = 0; i < engines.size(); ++i) queue_.add(Rank::engine);
    arrivals_ = queue_.add(Rank::arrival);
    queue_.update(arrivals_, source_.next_time());
  }

  /// The engine whose running step only waiting can end, or null. With one engine per thread of execution
  /// there is at most one.
  Engine* joinable() const {
    for (Engine* engine : engines_)
      if (engine->must_join()) return engine;
    return nullptr;
  }
  Time next() const { return queue_.first_time(); }

  void turn(Time t, Engine* joined) {
    touched_.clear();
    if (joined != nullptr) {
      const auto place = std::find(engines_.begin(), engines_.end(), joined);
      land(static_cast<std::uint32_t>(place - engines_.begin()), t);
    }
    // What lands may bring arrivals of the same moment, and what is decided may end requests whose sources
    // answer at once.
    do {
      while (queue_.first_time() <= t) {
        if (queue_.first() == arrivals_)
          arrive(t);
        else
          land(queue_.first(), t);
      }
      decide(t);
    } while (queue_.first_time() <= t);
  }
  bool drained() {
    return source_.next_time() == kNever &&
           std::all_of(engines_.begin(), engines_.end(), [](const Engine* e) { return e->is_idle(); });
  }

 private:
  void land(std::uint32_t i, Time t) {
    engines_[i]->land(t);
    touch(i);
    pass_endings(i);
    // Until it decides it has no event of its own.
    queue_.update(i, kNever);
  }
  void arrive(Time t) {
    const Offer offer = source_.pop();
    const std::uint32_t i = router_ != nullptr ? router_->route(offer, t) : 0;
    engines_[i]->submit(offer, t);
    touch(i);
    pass_endings(i);
    queue_.update(arrivals_, source_.next_time());
  }
  void decide(Time t) {
    for (std::size_t k = 0; k < touched_.size(); ++k) {
      const std::uint32_t i = touched_[k];
      engines_[i]->decide(t);
      pass_endings(i);
      queue_.update(i, engines_[i]->next_event());
    }
    touched_.clear();
  }
  void touch(std::uint32_t i) {
    if (std::find(touched_.begin(), touched_.end(), i) == touched_.end()) touched_.push_back(i);
  }
  void pass_endings(std::uint32_t i) {
    if (engines_[i]->endings().empty()) return;
    for (const Ended& ended : engines_[i]->endings()) source_.on_end(ended.id, ended.at, ended.how);
    engines_[i]->clear_endings();
    queue_.update(arrivals_, source_.next_time());
  }

  Source& source_;
  std::span<Engine* const> engines_;
  Router* router_;
  EventQueue queue_;
  std::uint32_t arrivals_ = 0;
  std::vector<std::uint32_t> touched_;
};

}  // namespace

RunResult run(Source& source, std::span<Engine* const> engines, Clock& clock, Router* router,
              const RunLimits& limits) {
  Driver driver(source, engines, router);
  RunResult result;
  for (;;) {
    if (limits.stop != nullptr && limits.stop->load(std::memory_order_relaxed)) {
      result.stopped = true;
      break;
    }
    Engine* const running = driver.joinable();
    Time t = driver.next();
    if (running != nullptr) {
      t = running->join();
    } else {
      if (t == kNever || t > limits.horizon) break;
      clock.wait_until(t);
    }
    FT_CHECK(t >= result.end, picoseconds(t), picoseconds(result.end));
    result.end = t;
    ++result.events;
    driver.turn(t, running);
  }
  result.drained = driver.drained();
  return result;
}

}  // namespace foretoken

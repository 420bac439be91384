#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "sim/core/engine.hpp"
#include "sim/core/executor.hpp"
#include "sim/core/request.hpp"

namespace foretoken {

/// Simulated time: waiting is a jump.
class VirtualClock final : public Clock {
 public:
  void wait_until(Time) override {}
};

/// When a run ends before its source does.
struct RunLimits {
  /// No event after this time is handled.
  Time horizon = kNever;
  /// Set from outside (Ctrl-C): the run ends at the next event.
  const std::atomic<bool>* stop = nullptr;
};

/// Outcome of a run.
struct RunResult {
  /// Time of the last event handled.
  Time end{};
  /// All requests ended and the source has no more.
  bool drained = false;
  /// Stopped from outside.
  bool stopped = false;
  /// Events handled.
  std::uint64_t events = 0;
};

/// Chooses the engine for a request. Called in the order of arrivals.
class Router {
 public:
  virtual ~Router() = default;
  /// Index of the engine that gets the request.
  virtual std::uint32_t route(const Offer& offer, Time t) = 0;
};

/// Drives engines through one queue of events until nothing is left to happen. At each time: what ended is
/// taken in, then arrivals are routed and submitted (so that a decision made at that moment sees them), then
/// the engines concerned decide. `router` may be null for one engine.
RunResult run(Source& source, std::span<Engine* const> engines, Clock& clock, Router* router = nullptr,
              const RunLimits& limits = {});

}  // namespace foretoken

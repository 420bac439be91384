#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/policy.hpp"
#include "sim/core/request.hpp"
#include "sim/core/scheduler.hpp"
#include "tests/support/draw.hpp"

namespace foretoken::laws {

/// Prices of a step's parts in picoseconds. Linear, so that a window of decode steps has a closed form.
struct Prices {
  std::int64_t step = 1000;
  std::int64_t chunk_token = 10;
  std::int64_t chunk_context = 0;
  std::int64_t decode_row = 5;
  std::int64_t context_token = 0;
  std::int64_t padding_token = 0;
  std::int64_t dead_row = 0;
  std::int64_t copy = 0;
  std::int64_t copied_block = 0;
  /// Longest window that the executor foretells.
  std::int64_t window_max = 1 << 20;
};

/// One request of a drawn workload.
struct Item {
  Offer offer;
  std::vector<std::uint64_t> hashes;
  /// Arrives `think` after the end of that item, in whatever way it ended; -1: at `offer.request.arrival`.
  int after = -1;
  Duration think{};
};

/// Everything that a run follows from.
struct Setup {
  Policy policy;
  Capacity capacity;
  Prices prices;
  std::vector<Item> items;
  EngineOptions engine;
  SchedulerOptions scheduler;
};

/// Whether the values of a policy make sense together; what is refused here could not serve its requests.
bool valid(const Policy& policy);
/// The policy in one line, with the names of its fields.
std::string describe(const Policy& policy, const Capacity& capacity);
/// The first requests, one to a line.
std::string describe(const std::vector<Item>& items);

/// What a workload is drawn for.
struct Traits {
  /// Arrivals that wait for the end of another request.
  bool closed_loop = true;
  /// Clients that leave.
  bool leaving = true;
  /// Shared prefixes.
  bool sharing = true;
  std::int32_t requests_max = 40;
};

/// A policy from the whole space, valid.
Policy draw_policy(Draw& draw);
/// Pools so small that they are often short, and a context that a few blocks hold.
Capacity draw_capacity(Draw& draw, const Policy& policy);
/// Prices on a grid, so that different events often fall on the same moment.
Prices draw_prices(Draw& draw);
/// Requests for an engine of that capacity, arrivals on the grid of `prices`.
std::vector<Item> draw_items(Draw& draw, const Capacity& capacity, const Policy& policy, const Prices& prices,
                             const Traits& traits);
/// All of it, noted for a failure.
Setup draw_setup(Draw& draw, const Traits& traits = {});

}  // namespace foretoken::laws

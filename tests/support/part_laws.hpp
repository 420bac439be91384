#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/core/executor.hpp"
#include "sim/fleet/event_queue.hpp"
#include "sim/metrics/histogram.hpp"
#include "tests/support/draw.hpp"

namespace foretoken::laws {

/// The queue gives events in the order of time, rank and id, whatever moved in between.
template <class Queue>
void queue_is_in_order(Draw& draw) {
  Queue queue;
  const std::int32_t count = draw.requests(1, 12);
  std::vector<Rank> ranks;
  std::vector<Time> times(static_cast<std::size_t>(count), kNever);
  for (std::int32_t i = 0; i < count; ++i) {
    ranks.push_back(draw.pick({Rank::engine, Rank::arrival}));
    LAW(queue.add(ranks.back()) == static_cast<std::uint32_t>(i));
  }
  LAW(queue.first_time() == kNever);
  for (int turn = 0; turn < 60; ++turn) {
    const auto moved = static_cast<std::uint32_t>(draw.between(0, count - 1));
    times[moved] = draw.chance(0.2) ? kNever : Time{Duration{draw.between(0, 6)}};
    queue.update(moved, times[moved]);
    std::uint32_t first = 0;
    for (std::uint32_t i = 1; i < times.size(); ++i)
      if (std::tie(times[i], ranks[i], i) < std::tie(times[first], ranks[first], first)) first = i;
    LAW(queue.first() == first && queue.first_time() == times[first], queue.first(), first);
  }
}

/// The end of a window is the sum of its steps.
template <class Window>
void windows_are_sums(Draw& draw) {
  Window window;
  window.begin = Time{Duration{draw.between(0, 1000)}};
  window.first = Duration{draw.between(1, 1000)};
  window.growth = Duration{draw.between(0, 50)};
  Time end = window.begin;
  for (std::int64_t repeats = 0; repeats < 80; ++repeats) {
    LAW(window.end_after(repeats) == end, "closed form and loop differ", repeats);
    end += window.first + window.growth * repeats;
  }
}

/// A progression counts as its loop does.
template <class Histogram>
void progressions_are_loops(Draw& draw) {
  Histogram closed;
  Histogram loop;
  const std::int64_t repeats = draw.between(0, 300);
  const std::int64_t growth = draw.between(-1000, 1000) * (std::int64_t{1} << draw.between(0, 10));
  const std::int64_t least = draw.between(0, 1 << 20);
  const std::int64_t first = growth < 0 ? least - growth * std::max<std::int64_t>(0, repeats - 1) : least;
  const std::int64_t n = draw.between(0, 4);
  closed.add_progression(first, growth, repeats, n);
  for (std::int64_t j = 0; j < repeats; ++j) loop.add(first + growth * j, n);
  LAW(closed.count() == loop.count(), closed.count(), loop.count());
  LAW(closed.mean_ps() == loop.mean_ps(), closed.mean_ps(), loop.mean_ps());
  LAW(closed.max_ps() == loop.max_ps(), closed.max_ps(), loop.max_ps());
  for (int q = 0; q <= 100; ++q) LAW(closed.quantile_ps(q * 0.01) == loop.quantile_ps(q * 0.01), q);
}

/// A scenario means the same in whatever order the members of its objects stand; `read` resolves one.
void member_order_is_free(Draw& draw, const std::function<Json(const Json&)>& read = {});

/// A row of a trace as it arrives.
struct TraceRow {
  Time arrival{};
  std::int32_t prompt_tokens = 0;
  std::int32_t output_tokens = 0;
  std::string slo_class;
};
/// The rows that a trace at that path offers.
std::vector<TraceRow> rows_of_trace(const std::string& path);
/// The files that a trace is split into offer, one after the other, what the whole offers.
void split_trace_is_whole(
    Draw& draw, const std::function<std::vector<TraceRow>(const std::string& path)>& read = rows_of_trace);

}  // namespace foretoken::laws

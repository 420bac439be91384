#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/support/stage.hpp"

namespace foretoken::laws {

/// Whatever takes a setup through a run. The laws below compare runs with each other; with a runner that has
/// a fault, they must break.
using Runner = std::function<EventLog(const Setup&)>;

/// Skipping ahead over identical decode steps gives what one step at a time gives.
void skipping_is_stepping(Draw& draw, const Runner& run = log_of);
/// Walking every resident gives what the fast paths give.
void fast_paths_are_walks(Draw& draw, const Runner& run = log_of);
/// The same setup gives the same run.
void runs_repeat(Draw& draw, const Runner& run = log_of);
/// Recorded durations of steps bring the same plans back; `kept` is what became of the record.
void records_replay(Draw& draw, const std::function<void(std::vector<Duration>&)>& kept = {});
/// A cap on chunks that no prompt reaches is no cap, and an endless budget no budget.
void endless_limits_are_none(Draw& draw, const Runner& run = log_of);
/// A prefix cache without shared prefixes and without preemptions is no cache.
void nothing_shared_is_no_cache(Draw& draw, const Runner& run = log_of);
/// With memory for all, what is reserved and what is taken does not matter.
void memory_for_all_is_endless(Draw& draw, const Runner& run = log_of);
/// With one sequence at a time, the phases of a step do not matter.
void one_at_a_time_has_no_phases(Draw& draw, const Runner& run = log_of);
/// All costs and gaps times c: all times times c, exactly.
void times_scale(Draw& draw, const Runner& run = log_of);
/// All arrivals shifted: all times shifted.
void times_shift(Draw& draw, const Runner& run = log_of);
/// Up to any moment, a run is the same whatever the lengths of answers turn out to be after it.
void lengths_are_unknown(Draw& draw, const Runner& run = log_of);
/// An engine behind a router is that engine; `through` is a run with a router.
void fleet_of_one_is_the_engine(Draw& draw, const Runner& through);

/// A draw of a stream is a function of seed, stream and position alone.
template <class Stream>
void draws_stand_alone(Draw& draw) {
  const auto seed = static_cast<std::uint64_t>(draw.between(0, 1 << 30));
  const auto number = static_cast<std::uint64_t>(draw.between(0, 100));
  const Stream first(seed, number);
  std::vector<double> alone;
  for (std::uint64_t i = 0; i < 8; ++i) alone.push_back(first.gamma(i, 0.3 + static_cast<double>(i)));
  // Another stream in between, and another order, disturb nothing.
  const Stream second(seed, number);
  const Stream new_one(seed, number + 1);
  for (std::uint64_t i = 8; i-- > 0;) {
    LAW(new_one.bits(i) != first.bits(i));
    LAW(second.gamma(i, 0.3 + static_cast<double>(i)) == alone[static_cast<std::size_t>(i)], i);
  }
}

}  // namespace foretoken::laws

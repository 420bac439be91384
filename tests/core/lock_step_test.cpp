#include "sim/core/lock_step.hpp"

#include <algorithm>
#include <map>

#include "sim/core/rules.hpp"
#include "tests/catch.hpp"
#include "tests/support/draw.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

using Contexts = std::map<std::uint32_t, std::int32_t>;

/// Blocks that rows with these contexts open over the next `ticks` tokens, row by row.
std::int64_t growth_of(const Contexts& rows, std::int64_t ticks, std::int32_t block_tokens) {
  std::int64_t blocks = 0;
  for (const auto& [slot, context] : rows)
    blocks += blocks_for(context + ticks, block_tokens) - blocks_for(context, block_tokens);
  return blocks;
}

void require_same(LockStep& fast, const Contexts& rows, std::int32_t block_tokens, Draw& draw) {
  std::int64_t sum = 0;
  std::int32_t least = rows.empty() ? 0 : INT32_MAX, greatest = 0;
  for (const auto& [slot, context] : rows) {
    LAW(fast.context(Slot{slot}) == context, slot);
    sum += context;
    least = std::min(least, context);
    greatest = std::max(greatest, context);
  }
  LAW(fast.count() == static_cast<std::int32_t>(rows.size()));
  LAW(fast.context_sum() == sum);
  LAW(fast.context_min() == least, fast.context_min(), least);
  LAW(fast.context_max() == greatest, fast.context_max(), greatest);
  LAW(fast.growth() == growth_of(rows, 1, block_tokens));
  const std::int64_t ticks = draw.between(0, 70);
  LAW(fast.growth_over(ticks) == growth_of(rows, ticks, block_tokens), ticks);
  const std::int64_t blocks = draw.between(0, 30);
  const std::int64_t limit = draw.between(0, 70);
  std::int64_t within = 0;
  while (within < limit && growth_of(rows, within + 1, block_tokens) <= blocks) ++within;
  LAW(fast.ticks_within(blocks, limit) == within, blocks, limit, within);
}

}  // namespace

TEST_CASE("rows in lock-step are what a loop over their contexts says", "[property]") {
  for_each_seed(200, [](Draw& draw) {
    const std::int32_t block_tokens = draw.pick({1, 2, 4, 16, 13});
    constexpr std::uint32_t kSlots = 12;
    LockStep fast(block_tokens, kSlots);
    Contexts rows;
    for (int operation = 0; operation < 100; ++operation) {
      const auto slot = static_cast<std::uint32_t>(draw.between(0, kSlots - 1));
      if (draw.chance(0.4)) {
        const std::int64_t ticks = draw.pick({std::int64_t{1}, draw.between(0, 40)});
        fast.advance(ticks);
        for (auto& [id, context] : rows) context += static_cast<std::int32_t>(ticks);
      } else if (rows.erase(slot) > 0) {
        fast.leave(Slot{slot});
      } else {
        rows[slot] = draw.small(1, 60);
        fast.enter(Slot{slot}, rows[slot]);
      }
      require_same(fast, rows, block_tokens, draw);
    }
  });
}

// Recounts what the scheduler keeps as running totals; tests call it after every commit.
#include "sim/core/scheduler.hpp"

namespace foretoken {

bool Scheduler::audit() const {
  std::int64_t held = 0, untouched = 0, other = 0, lock_step_sum = 0, host = 0, dead = 0;
  std::int32_t resident = 0, lock_step = 0, draining = 0, loading = 0, catching = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    if (row.state == RowState::free) continue;
    const Slot slot{static_cast<std::uint32_t>(i)};
    const bool in_lock_step = row.state == RowState::lock_step;
    const std::int64_t context = context_of(slot);
    const bool grows = in_lock_step && policy_.take != Take::reserved && !pool_.cache();
    const std::int64_t blocks = grows ? blocks_for(context, policy_.block_tokens) : held_blocks(slot);
    // I6: what is computed has a place.
    if (blocks * policy_.block_tokens < context) return false;
    held += blocks;
    untouched += blocks - blocks_for(context, policy_.block_tokens);
    (in_lock_step ? lock_step_sum : other) += context;
    if (row.state == RowState::dead) dead += context;
    ++resident;
    lock_step += in_lock_step;
    draining += row.state == RowState::draining;
    loading += row.state == RowState::loading;
    catching += row.state == RowState::catching_up;
  }
  std::int64_t waiting = 0, swapped = 0, living = 0;
  for (const Sequence& s : sequences_) {
    living += s.residence != Residence::gone;
    waiting += s.residence == Residence::waiting;
    swapped += s.residence == Residence::swapped;
    if (s.residence == Residence::swapped) host += s.blocks;
  }
  KvUse use;
  pool_.measure(use);
  const bool memory =
      pool_.cache() ? pool_.cache()->audit() : use.blocks_held == held + deferred_blocks_ + moving_blocks_;
  return memory && untouched == untouched_blocks_ && other == other_context_ && dead == dead_context_ &&
         lock_step_sum == lock_step_.context_sum() && resident == resident_ &&
         lock_step == lock_step_.count() && draining == draining_ && loading == loading_ &&
         catching == static_cast<std::int32_t>(catching_up_.size()) && waiting == this->waiting() &&
         swapped == this->swapped() && living == alive_ &&
         use.host_blocks_held == host + loading_blocks_;
}

}  // namespace foretoken

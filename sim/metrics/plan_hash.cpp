#include "sim/metrics/plan_hash.hpp"

#include "sim/core/random.hpp"

namespace foretoken {
namespace {

/// Order-sensitive: each value is mixed into the state of all before it.
class Hasher {
 public:
  void add(std::uint64_t value) { state_ = mix(state_ ^ mix(value)); }
  void add_signed(std::int64_t value) { add(static_cast<std::uint64_t>(value)); }
  /// Lists begin with a mark of their own and their length, so that elements cannot wander from one list to
  /// the next.
  void begin(std::uint64_t mark, std::size_t size) { add(mark << 48 | size); }
  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_ = 0x666f7265746f6b65u;
};

/// A resident is known by its slot, and the slot's owner by the admission. Handles stay out: which one a
/// request gets depends on whether it came before or after another's end within one turn, which no plan can
/// see.
void add_slot(Hasher& hash, Slot slot) { hash.add(static_cast<std::uint32_t>(slot)); }

}  // namespace

std::uint64_t plan_hash(const StepPlan& plan) {
  Hasher hash;
  hash.begin(1, plan.chunks.size());
  for (const Chunk& chunk : plan.chunks) {
    add_slot(hash, chunk.slot);
    hash.add_signed(chunk.tokens);
    hash.add_signed(std::int64_t{chunk.context} * 2 + (chunk.sampled ? 1 : 0));
  }
  hash.begin(2, plan.decodes.size());
  for (const DecodeRow& row : plan.decodes)
    hash.add(std::uint64_t{static_cast<std::uint32_t>(row.slot)} << 32 |
             static_cast<std::uint32_t>(row.context));
  hash.begin(3, plan.admissions.size());
  for (const Admission& admission : plan.admissions) {
    add_slot(hash, admission.slot);
    hash.add(static_cast<std::uint32_t>(admission.id));
    hash.add_signed(admission.known_tokens);
    hash.add_signed(std::int64_t{admission.cached_tokens} * 2 + (admission.swapped_in ? 1 : 0));
  }
  hash.begin(4, plan.evictions.size());
  for (const Eviction& eviction : plan.evictions) {
    add_slot(hash, eviction.slot);
    hash.add_signed(std::int64_t{eviction.context_tokens} * 2 + (eviction.swapped ? 1 : 0));
  }
  hash.begin(5, plan.copies.size());
  for (const Copy& copy : plan.copies) {
    add_slot(hash, copy.slot);
    hash.add_signed(std::int64_t{copy.blocks} * 4 + static_cast<int>(copy.from) * 2 +
                    static_cast<int>(copy.to));
  }
  hash.begin(6, plan.lock_step_changes.size());
  for (const LockStepChange& change : plan.lock_step_changes) {
    add_slot(hash, change.slot);
    hash.add_signed(std::int64_t{change.context} * 2 + (change.entered ? 1 : 0));
  }
  hash.begin(7, plan.left_out.size());
  for (const std::int32_t left_out : plan.left_out) hash.add_signed(left_out);
  for (const std::int64_t figure :
       {std::int64_t{plan.decode_count}, plan.decode_context_sum, std::int64_t{plan.decode_context_min},
        std::int64_t{plan.decode_context_max}, plan.new_tokens, std::int64_t{plan.sampled_rows},
        std::int64_t{plan.dead_rows}, plan.dead_context_sum, plan.padding_tokens,
        std::int64_t{plan.wasted_rows}, plan.tick})
    hash.add_signed(figure);
  return hash.state();
}

}  // namespace foretoken

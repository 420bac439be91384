#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/scheduler.hpp"

namespace foretoken::test {

/// What is asked of a desk; the rest of a request is of no matter to a plan.
struct Ask {
  std::int32_t prompt_tokens = 1;
  std::int32_t max_new_tokens = 1;
  std::int32_t priority = 0;
  std::int64_t arrival = 0;
  std::vector<std::uint64_t> hashes{};  ///< Of the prompt, one for every block of 4 tokens.
};

/// A scheduler driven by hand: requests have letters in the order in which they come, plans are read as text.
class Desk {
 public:
  Desk(const Policy& policy, const Capacity& capacity, bool fast_paths);
  /// The policy of a section `engine`, as users write it, with blocks of 4 tokens unless it says otherwise.
  Desk(const std::string& engine, bool fast_paths, std::int64_t host_blocks = 0, bool overlap = false);

  /// Submits; the letter, or the reason of the refusal.
  std::string submit(const Ask& ask);
  /// Plans. Parts in order: evictions `-B(9)` with the tokens lost or `-B(9 swapped)`; admissions `+A`,
  /// `+A(hit 4)`, `+B(back 9)`; decodes `A@7` with the tokens before; chunks `A:8@0` with tokens and the
  /// tokens before, `*` where it brings a token; `pad 2`; `dead 1@4`; after a semicolon how many were left
  /// out, by reason. A plan without tokens begins with `no step`; without a plan it is `idle`, why and until
  /// when.
  std::string plan(std::int64_t now = 0);
  /// The oldest step that has not ended has; these requests with it.
  void commit(const std::string& ended = "");
  void cancel(char letter);
  /// The oldest copy under way has ended.
  void finish_copy();

  std::int64_t held() const { return scheduler_->kv_use().blocks_held; }
  Scheduler& scheduler() { return *scheduler_; }
  /// Rows of the plan made last whose sequence had ended.
  std::int32_t wasted() const { return last_ == nullptr ? 0 : last_->wasted_rows; }

 private:
  std::string text(const StepPlan& plan);
  char letter(Handle handle) const { return letters_.at(index(handle)); }

  std::unique_ptr<Scheduler> scheduler_;
  std::map<std::size_t, char> letters_;  // by handle
  std::map<char, Handle> handles_;
  std::map<Slot, char> owners_;
  std::vector<Copy> copies_;
  std::vector<std::vector<std::uint64_t>> hashes_;
  const StepPlan* last_ = nullptr;
  char next_ = 'A';
};

/// Every way to plan must give the same.
inline constexpr bool kBothWays[] = {true, false};

}  // namespace foretoken::test

#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/core/request.hpp"
#include "sim/core/time.hpp"

namespace foretoken::laws {

/// The engines that the plain twin knows.
enum class PlainEngine { fixed_batch, orca, vllm_v0, vllm_v1, sarathi };

/// An engine in the words of the originals.
struct PlainConfig {
  PlainEngine engine{};
  int sequences_max = 1;
  int budget = 0;  ///< Tokens in a step; 0: no limit.
  int block_tokens = 16;
  std::int64_t blocks = 0;     ///< Usable ones.
  std::int64_t watermark = 0;  ///< Blocks that an admission leaves free.
  int context_max = 0;         ///< max_model_len.
  int chunk_cap = 0;           ///< long_prefill_token_threshold.
  bool chunked = true;
  bool reserve_full = true;  ///< scheduler_reserve_full_isl.
  int join_count = 1;        ///< N of N-or-timeout.
  Duration join_timeout{};
  int depth = 0;
  Duration step_price{};
  Duration token_price{};
};

/// What one step did.
struct PlainStep {
  Time begin{};
  std::map<int, int> tokens;  ///< By request.
  std::vector<int> evicted;   ///< Since the step before.
  std::vector<int> admitted;
  friend bool operator==(const PlainStep&, const PlainStep&) = default;
};

/// Known engines written down once more, request by request and without any cleverness, from their
/// descriptions: what the serving core must agree with, step by step.
class PlainScheduler {
 public:
  PlainScheduler(const PlainConfig& config, std::vector<Offer> offers);
  /// Runs everything and returns the steps.
  std::vector<PlainStep> run();

 private:
  struct Seq {
    Offer offer;
    int limit = 0;    // of tokens, as the client asked
    int output = 0;   // that it will make
    int emitted = 0;  // seen by the scheduler
    int pending = 0;  // sampled by the step in flight
    int computed = 0;
    std::int64_t blocks = 0;
    bool done = false;
  };
  struct Plan {
    std::map<int, int> tokens;
    std::vector<int> reaching;  // up to their last known token
    std::vector<int> evicted;
    std::vector<int> admitted;
  };
  struct PendingFree {
    std::int64_t blocks = 0;
    int until = 0;
  };

  int known(const Seq& s) const { return s.offer.request.prompt_tokens + s.emitted + s.pending; }
  int debt(const Seq& s) const { return known(s) - s.computed; }
  bool is_ending(const Seq& s) const { return s.limit > 0 ? s.emitted + s.pending >= s.limit : debt(s) == 0; }
  std::int64_t blocks_for(std::int64_t tokens) const;
  std::int64_t coming() const;
  int longest() const;

  void take_arrivals(Time now);
  Plan make_plan(Time now);
  void plan_fixed_batch(Plan& plan, Time now);
  void plan_orca(Plan& plan);
  void plan_v0(Plan& plan);
  void plan_v1(Plan& plan);
  void plan_sarathi(Plan& plan);
  bool grow(Plan& plan, int id, int tokens);
  void preempt(Plan& plan, int id);
  void admit(Plan& plan, std::int64_t blocks);
  void grant(Plan& plan, int id, int tokens);
  void give_back(std::int64_t blocks);
  void land(const Plan& plan);
  void end(int id);

  PlainConfig config_;
  std::vector<Seq> seqs_;
  std::size_t arrived_ = 0;
  std::deque<int> waiting_;
  std::vector<int> running_;
  std::vector<int> dead_;
  std::int64_t free_ = 0;
  std::vector<PendingFree> pending_frees_;
  int budget_left_ = 0;
  bool is_owed_ = false;
  int planned_ = 0;  // steps
  int landed_ = 0;
  Time wake_ = kNever;
};

}  // namespace foretoken::laws

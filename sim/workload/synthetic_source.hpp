#pragma once
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/workload/arrivals.hpp"
#include "sim/workload/offer_rules.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// Work made by chance: request i is a pure function of the specification and i, its arrival of the requests
/// before it (and, in a closed loop, of when they ended). Memory does not grow with the number of requests.
class SyntheticSource final : public WorkloadSource {
 public:
  explicit SyntheticSource(const WorkloadSpec& spec);

  Time next_time() override;
  Offer pop() override;
  void on_end(RequestId id, Time t, Ending how) override;

  const WorkloadNames& names() const override { return names_; }
  const WorkloadCounts& counts() const override { return counts_; }
  std::vector<WorkloadWarning> warnings() const override;
  const TraceInfo* trace() const override { return nullptr; }

 private:
  /// A class made ready for drawing.
  struct Kind {
    Offer pattern;
    LengthSpec prompt_tokens;
    LengthSpec output_tokens;
    std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
    PrefixSpec prefix;
    /// The hashes of all groups, one group after the other.
    std::vector<std::uint64_t> prefix_hashes;
    bool needs_normals = false;
  };

  void add_kind(const ClassSpec& entry);
  void prepare();
  inline void draw(std::uint64_t i);
  void share_prefix(const Kind& kind, std::uint64_t i);
  bool is_exhausted() const { return requests_max_ > 0 && counts_.offered >= requests_max_; }

  ArrivalSpec arrivals_spec_;
  std::int64_t requests_max_;
  Time end_;
  MaxNewTokens max_new_;
  OfferRules rules_;
  ClassMix mix_;
  RandomStream lengths_;
  RandomStream prefixes_;
  RandomStream thinks_;
  ArrivalProcess arrivals_;
  std::vector<Kind> kinds_;
  /// The next offer, ready but for its arrival in a closed loop.
  Offer ahead_;
  bool is_ready_ = false;
  std::uint64_t drawn_ = 0;
  std::uint64_t hashes_made_ = 0;
  /// When the thinking clients ask again.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> thinking_;
  WorkloadNames names_;
  WorkloadCounts counts_;
};

}  // namespace foretoken

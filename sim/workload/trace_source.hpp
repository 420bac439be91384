#pragma once
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/workload/offer_rules.hpp"
#include "sim/workload/trace_reader.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken {

/// The rows of a trace as arrivals. Rows with an arrival of their own stream through; rows that wait for
/// another request to end (`after`) are held in memory from the start, since any end may call for one. They
/// arrive their delay after that end; think times are not scaled with the rate. When a request is cancelled
/// or refused, the client gives up: what would have followed never comes and is counted.
class TraceSource final : public WorkloadSource {
 public:
  explicit TraceSource(const WorkloadSpec& spec);

  Time next_time() override;
  Offer pop() override;
  void on_end(RequestId id, Time t, Ending how) override;

  const WorkloadNames& names() const override { return names_; }
  const WorkloadCounts& counts() const override { return counts_; }
  std::vector<WorkloadWarning> warnings() const override;
  const TraceInfo* trace() const override { return &reader_.info(); }

 private:
  /// A row that waits for another one, with its place in the order of the file.
  struct Later {
    Time arrival;
    std::uint32_t row;
    friend bool operator>(const Later& a, const Later& b) {
      return a.arrival != b.arrival ? a.arrival > b.arrival : a.row > b.row;
    }
  };

  void read_followers();
  void fill_ahead();
  bool begin_next_pass();
  std::optional<Time> arrival_of(const TraceRecord& record) const;
  Offer make_offer(const TraceRecord& record, std::uint64_t i);
  std::int64_t followers_in_all(const std::string& id) const;

  WorkloadSpec spec_;
  TraceReader reader_;
  OfferRules rules_;
  ClassMix mix_;
  double time_scale_ = 1.0;
  /// The row that `ahead_` shows, and the row that was popped last, whose hashes are still in use.
  TraceRecord record_;
  TraceRecord popped_;
  std::optional<Offer> ahead_;
  bool at_end_ = false;
  /// Passes begun before this one, when this one began, and the arrivals of the present one.
  std::int32_t passes_done_ = 0;
  std::int64_t pass_begin_ns_ = 0;
  std::int64_t pass_first_ns_ = 0;
  std::int64_t pass_last_ns_ = 0;
  std::int64_t pass_count_ = 0;
  std::uint64_t draws_ = 0;
  std::vector<TraceRecord> followers_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> followers_of_;
  /// Trace ids of the requests under way that others wait for.
  std::unordered_map<std::uint32_t, std::string> awaited_;
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
  NameTable class_table_, tenant_table_, source_table_;
  WorkloadNames names_;
  WorkloadCounts counts_;
};

}  // namespace foretoken

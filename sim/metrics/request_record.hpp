#pragma once
#include <array>
#include <cstdint>

#include "sim/core/request.hpp"
#include "sim/metrics/metric.hpp"

namespace foretoken {

/// How a request left the run.
enum class Outcome : std::uint8_t { finished, cancelled, refused, unfinished };
/// "finished", "cancelled", "refused", "unfinished".
std::string_view outcome_name(Outcome outcome);

/// One request's life, for per-request output. Times in picoseconds; -1 where there is none.
struct RequestRecord {
  RequestId id{};
  Outcome outcome{};
  std::uint16_t slo_class = 0;
  std::uint16_t tenant = 0;
  std::uint16_t source = 0;
  bool truncated = false;
  bool good = false;
  std::int32_t prompt_tokens = 0;
  std::int32_t output_tokens = 0;  ///< Emitted.
  std::int32_t cached_tokens = 0;  ///< Prefix hit at the first admission.
  std::int32_t preemptions = 0;
  std::int64_t arrival_ps = 0;
  std::int64_t end_ps = 0;  ///< End of the life; delivery may be later (batch_end).
  /// By Metric; -1 where not defined.
  std::array<std::int64_t, kRequestMetrics> value_ps{};
};

/// Receives every request once, when it has left the run.
class RequestSink {
 public:
  virtual ~RequestSink() = default;
  /// Takes the record in; called in the order of endings.
  virtual void write(const RequestRecord& record) = 0;
};

}  // namespace foretoken

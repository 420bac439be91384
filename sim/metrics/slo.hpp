#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/metrics/metric.hpp"

namespace foretoken {

/// One threshold, as written in `--slo 'realtime:ttft.p99<1s'`.
struct Slo {
  /// As the user wrote it, blanks removed.
  std::string text;
  /// Class it holds for; empty: all requests.
  std::string class_name;
  /// Index of that class; -1 for all. Set by `resolve_slos`.
  std::int32_t class_index = -1;
  /// False for `goodput`.
  bool is_latency = true;
  Metric metric = Metric::ttft;
  /// Quantile in (0, 1], 1 for `max`; nothing for `mean`.
  std::optional<double> quantile;
  /// True for `<` and `<=`, false for `>` and `>=`.
  bool below = true;
  /// Whether the limit itself passes (`<=`, `>=`).
  bool inclusive = false;
  /// Limit of a latency, picoseconds.
  std::int64_t limit_ps = 0;
  /// Limit of goodput, a share in [0, 1].
  double limit_share = 0;
};

/// Parses one threshold: `[class:]metric.statistic<duration` or `[class:]goodput>share`; durations need a
/// unit, shares are numbers in [0, 1] or end in `%`. A UsageError says what was expected and suggests the
/// nearest name.
Slo parse_slo(std::string_view text);
/// Finds each threshold's class among the names; an unknown one is a UsageError that lists them.
void resolve_slos(std::vector<Slo>& slos, const std::vector<std::string>& class_names);
/// Whether the threshold binds each single request of its class, too: an upper limit on anything but the
/// pooled gap.
bool is_per_request(const Slo& slo);

/// A threshold against its measured value.
struct SloResult {
  Slo slo;
  /// Picoseconds, or a share for goodput.
  double value = 0;
  /// 95 % interval, same unit; equal to `value` where none is known.
  double low = 0;
  double high = 0;
  bool has_interval = false;
  /// Without a single sample there is no value, and nothing was met.
  bool has_value = false;
  bool pass = false;
  /// No sample at all, or too few for the quantile: the verdict stands on little.
  bool few_samples = false;
};

/// Whether a value is on the right side of the limit.
bool meets(const Slo& slo, double value);
/// "ttft.p99 < 500 ms", "realtime:goodput > 99 %".
std::string slo_text(const Slo& slo);

}  // namespace foretoken

#include "sim/workload/synthetic_source.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr double kTwoPi = 6.283185307179586;
constexpr std::int64_t kDropsMax = 1'000'000;

ArrivalSpec open_loop(ArrivalSpec spec) {
  if (spec.kind == ArrivalKind::closed_loop) spec.kind = ArrivalKind::poisson;
  return spec;
}

std::vector<std::pair<std::int32_t, std::int32_t>> read_pairs(const std::string& path) {
  TraceReader reader(path);
  TraceRecord record;
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  while (reader.next(record)) pairs.emplace_back(record.input_tokens, record.output_tokens);
  if (pairs.empty()) throw input_error(path, "rows to draw lengths from", "none");
  return pairs;
}

}  // namespace

SyntheticSource::SyntheticSource(const WorkloadSpec& spec)
    : arrivals_spec_(spec.arrivals),
      requests_max_(spec.requests),
      end_(after(Time{}, spec.duration)),
      max_new_(spec.max_new),
      rules_(spec),
      mix_(spec.classes, spec.seed),
      lengths_(spec.seed, streams::kLengths),
      prefixes_(spec.seed, streams::kPrefix),
      thinks_(spec.seed, streams::kThink),
      arrivals_(open_loop(spec.arrivals), spec.seed) {
  for (const ClassSpec& entry : spec.classes) add_kind(entry);
  if (arrivals_spec_.kind != ArrivalKind::closed_loop) return;
  const std::int64_t clients = arrivals_spec_.concurrency;
  std::vector<Time> starts(static_cast<std::size_t>(clients));
  const double step_ps = static_cast<double>(arrivals_spec_.ramp.count()) / static_cast<double>(clients);
  for (std::size_t c = 0; c < starts.size(); ++c) {
    starts[c] = Time(Duration(static_cast<std::int64_t>(step_ps * static_cast<double>(c))));
  }
  thinking_ = decltype(thinking_)(std::greater<>(), std::move(starts));
}

void SyntheticSource::add_kind(const ClassSpec& entry) {
  const auto index_of = [](const std::string& name, std::vector<std::string>& names) {
    const auto found = std::find(names.begin(), names.end(), name);
    const auto index = static_cast<std::uint16_t>(found - names.begin());
    if (found == names.end()) names.push_back(name);
    return index;
  };
  Kind kind;
  kind.pattern.request.slo_class = index_of(entry.name, names_.slo_classes);
  kind.pattern.request.tenant = index_of(entry.tenant, names_.tenants);
  kind.pattern.request.source = index_of(entry.source, names_.sources);
  kind.pattern.request.priority = entry.priority;
  kind.pattern.patience = entry.patience;
  kind.pattern.cancel_after = entry.cancel_after;
  kind.prompt_tokens = entry.prompt_tokens;
  kind.output_tokens = entry.output_tokens;
  if (!entry.lengths_trace.empty()) kind.pairs = read_pairs(entry.lengths_trace);
  kind.needs_normals = kind.pairs.empty() && (entry.prompt_tokens.kind == LengthKind::log_normal ||
                                              entry.output_tokens.kind == LengthKind::log_normal);
  kind.prefix = entry.prefix;
  if (entry.prefix.share > 0.0) {
    const std::int64_t blocks =
        std::int64_t{entry.prefix.groups} * (entry.prefix.tokens / entry.prefix.block_tokens);
    for (std::int64_t b = 0; b < blocks; ++b) kind.prefix_hashes.push_back(hashes_made_++);
  }
  kinds_.push_back(std::move(kind));
}

void SyntheticSource::draw(std::uint64_t i) {
  const Kind& kind = kinds_[mix_.choose(i)];
  ahead_ = kind.pattern;
  if (!kind.pairs.empty()) {
    const double place = lengths_.uniform(4 * i) * static_cast<double>(kind.pairs.size());
    const auto& [prompt, output] = kind.pairs[static_cast<std::size_t>(place)];
    ahead_.request.prompt_tokens = prompt;
    ahead_.output_tokens = output;
  } else {
    double z_prompt = 0.0, z_output = 0.0;
    if (kind.needs_normals) {
      // Box and Muller (1958) give two independent normals for one logarithm and one root.
      const double radius = std::sqrt(-2.0 * std::log(lengths_.uniform(4 * i)));
      const double angle = kTwoPi * lengths_.uniform(4 * i + 1);
      z_prompt = radius * std::cos(angle);
      z_output = radius * std::sin(angle);
    }
    ahead_.request.prompt_tokens = draw_length(kind.prompt_tokens, lengths_.uniform(4 * i + 2), z_prompt);
    ahead_.output_tokens = draw_length(kind.output_tokens, lengths_.uniform(4 * i + 3), z_output);
  }
  if (!kind.prefix_hashes.empty()) share_prefix(kind, i);
}

void SyntheticSource::share_prefix(const Kind& kind, std::uint64_t i) {
  if (prefixes_.uniform(2 * i) >= kind.prefix.share) return;
  const std::int32_t tokens = std::min(kind.prefix.tokens, ahead_.request.prompt_tokens);
  const auto blocks = static_cast<std::size_t>(tokens / kind.prefix.block_tokens);
  const auto in_group = static_cast<std::size_t>(kind.prefix.tokens / kind.prefix.block_tokens);
  const auto group = static_cast<std::size_t>(prefixes_.integer(2 * i + 1, 0, kind.prefix.groups - 1));
  ahead_.request.prefix_hashes = std::span(kind.prefix_hashes).subspan(group * in_group, blocks);
  ahead_.request.hash_block_tokens = kind.prefix.block_tokens;
}

void SyntheticSource::prepare() {
  // A request that is dropped for its length leaves its arrival unused in an open loop; a client draws again
  // at once.
  for (std::int64_t drops = 0;; ++drops) {
    if (drops == kDropsMax)
      throw input_error("workload: tokens_max", "a length that some request fits in",
                        "a million misses in a row");
    draw(drawn_);
    if (arrivals_spec_.kind != ArrivalKind::closed_loop) {
      ahead_.request.arrival = arrivals_.next();
      if (ahead_.request.arrival >= end_) ahead_.request.arrival = kNever;
    }
    if (ahead_.request.arrival == kNever || rules_.finish(ahead_, drawn_++, counts_)) break;
  }
  is_ready_ = true;
}

Time SyntheticSource::next_time() {
  if (is_exhausted()) return kNever;
  if (arrivals_spec_.kind == ArrivalKind::closed_loop) {
    return thinking_.empty() || thinking_.top() >= end_ ? kNever : thinking_.top();
  }
  if (!is_ready_) prepare();
  return ahead_.request.arrival;
}

Offer SyntheticSource::pop() {
  if (!is_ready_) prepare();
  if (arrivals_spec_.kind == ArrivalKind::closed_loop) {
    FT_CHECK(!thinking_.empty());
    ahead_.request.arrival = thinking_.top();
    thinking_.pop();
  }
  FT_CHECK(ahead_.request.arrival != kNever);
  ahead_.request.id = RequestId(static_cast<std::uint32_t>(counts_.offered++));
  is_ready_ = false;
  return ahead_;
}

void SyntheticSource::on_end(RequestId id, Time t, Ending) {
  if (arrivals_spec_.kind != ArrivalKind::closed_loop) return;
  Duration think = arrivals_spec_.think;
  if (arrivals_spec_.think_exponential) {
    const double drawn =
        thinks_.exponential(static_cast<std::uint64_t>(id)) * static_cast<double>(think.count());
    think = Duration(static_cast<std::int64_t>(std::min(drawn, 9e18)));
  }
  if (think <= kNever - t) thinking_.push(t + think);
}

std::vector<WorkloadWarning> SyntheticSource::warnings() const {
  std::vector<WorkloadWarning> found;
  if (counts_.over_long > 0) found.push_back(WorkloadWarning::over_long);
  if (counts_.outputs_truncated > 0) found.push_back(WorkloadWarning::outputs_truncated);
  if (max_new_ == MaxNewTokens::exact) found.push_back(WorkloadWarning::exact_max_new_tokens);
  return found;
}

}  // namespace foretoken

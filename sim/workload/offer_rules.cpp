#include "sim/workload/offer_rules.hpp"

#include "sim/base/error.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr double kRateMax = 1e9;

void require(bool holds, std::string_view what, std::string_view expected, const std::string& found) {
  if (!holds) throw input_error("workload: " + std::string(what), expected, found);
}

void check_rate(double rate, std::string_view what, double low) {
  require(rate >= low && rate <= kRateMax, what, "a rate above 0 and up to 1e9 per second", to_text(rate));
}

void check_arrivals(const ArrivalSpec& arrivals) {
  switch (arrivals.kind) {
    case ArrivalKind::trace: return;
    case ArrivalKind::gamma:
      require(arrivals.cv >= 0.01 && arrivals.cv <= 100.0, "cv", "a number in [0.01, 100]",
              to_text(arrivals.cv));
      [[fallthrough]];
    case ArrivalKind::poisson: return check_rate(arrivals.rate_per_s, "rate_per_s", 1e-9);
    case ArrivalKind::on_off: {
      check_rate(arrivals.on_rate_per_s, "on_rate_per_s", 0.0);
      check_rate(arrivals.off_rate_per_s, "off_rate_per_s", 0.0);
      // Below this, drawing one arrival would walk through millions of phases.
      const double in_cycle =
          arrivals.on_rate_per_s * seconds(arrivals.on) + arrivals.off_rate_per_s * seconds(arrivals.off);
      require(arrivals.on.count() > 0 && arrivals.off.count() > 0 && in_cycle >= 1e-6, "on_off",
              "phases that last and have arrivals (1e-6 a cycle at least)",
              to_text(in_cycle) + " arrivals a cycle");
      return;
    }
    case ArrivalKind::closed_loop:
      require(arrivals.concurrency >= 1 && arrivals.concurrency <= 10'000'000, "concurrency",
              "a whole number in [1, 10000000]", std::to_string(arrivals.concurrency));
      return;
  }
}

void check_length(const LengthSpec& length, const std::string& what, std::int32_t low) {
  require(length.min >= low && length.min <= length.max && length.max <= kTokensMax, what,
          "lengths in [" + std::to_string(low) + ", " + std::to_string(kTokensMax) + "] with min <= max",
          "[" + std::to_string(length.min) + ", " + std::to_string(length.max) + "]");
}

void check_class(const ClassSpec& entry, bool has_lengths) {
  const std::string what = "class \"" + entry.name + "\": ";
  require(entry.weight >= 0.0 && entry.weight <= 1e9, what + "weight", "a number in [0, 1e9]",
          to_text(entry.weight));
  if (!has_lengths) return;
  check_length(entry.prompt_tokens, what + "prompt_tokens", 1);
  check_length(entry.output_tokens, what + "output_tokens", 0);
  const PrefixSpec& prefix = entry.prefix;
  require(prefix.share >= 0.0 && prefix.share <= 1.0, what + "prefix share", "a number in [0, 1]",
          to_text(prefix.share));
  if (prefix.share == 0.0) return;
  const bool sound = prefix.groups >= 1 && prefix.block_tokens >= 1 && prefix.tokens >= prefix.block_tokens &&
                     prefix.tokens <= kTokensMax &&
                     std::int64_t{prefix.groups} * (prefix.tokens / prefix.block_tokens) <= 10'000'000;
  require(sound, what + "prefix", "at least one group and one whole block, 10,000,000 blocks in all at most",
          std::to_string(prefix.groups) + " groups of " + std::to_string(prefix.tokens) +
              " tokens in blocks of " + std::to_string(prefix.block_tokens));
}

}  // namespace

std::uint16_t NameTable::intern(std::string_view name, std::vector<std::string>& names) {
  if (name.empty()) name = "default";
  if (!indices_.empty() && name == last_) return last_index_;
  last_ = name;
  const auto [at, is_new] = indices_.try_emplace(last_, static_cast<std::uint16_t>(names.size()));
  if (is_new) {
    if (names.size() > 0xffff)
      throw input_error("workload", "at most 65536 names of classes, tenants or sources", "more");
    names.push_back(last_);
  }
  return last_index_ = at->second;
}

ClassMix::ClassMix(const std::vector<ClassSpec>& classes, std::uint64_t seed)
    : draws_(seed, streams::kClass) {
  double sum = 0.0;
  for (const ClassSpec& entry : classes) shares_.push_back(sum += entry.weight);
  for (double& share : shares_) share /= sum;
}

void check_spec(const WorkloadSpec& spec) {
  const bool is_trace = spec.arrivals.kind == ArrivalKind::trace;
  check_arrivals(spec.arrivals);
  require(is_trace || !spec.classes.empty(), "classes", "at least one class", "none");
  require(spec.classes.size() <= 1000, "classes", "at most 1000 classes",
          std::to_string(spec.classes.size()));
  double weights = spec.classes.empty() ? 1.0 : 0.0;
  for (const ClassSpec& entry : spec.classes) {
    check_class(entry, !is_trace && entry.lengths_trace.empty());
    weights += entry.weight;
  }
  require(weights > 0.0, "classes", "a positive sum of weights", "0");
  require(spec.requests >= 0 && spec.requests <= 0xffffffffLL, "requests", "a number in [0, 4294967295]",
          std::to_string(spec.requests));
  require(
      spec.max_new != MaxNewTokens::fixed || (spec.max_new_tokens >= 1 && spec.max_new_tokens <= kTokensMax),
      "max_new_tokens", "a number in [1, 100000000]", std::to_string(spec.max_new_tokens));
  if (!is_trace) return;
  require(!spec.trace.path.empty(), "trace", "a path", "none");
  require(spec.trace.from.count() >= 0 && spec.trace.from < spec.trace.to, "trace window", "from < to",
          duration_text(spec.trace.from.count()));
  require(spec.trace.rate_scale >= 1e-9 && spec.trace.rate_scale <= kRateMax, "rate_scale",
          "a number above 0", to_text(spec.trace.rate_scale));
  require(spec.trace.rate_per_s >= 0.0 && spec.trace.rate_per_s <= kRateMax, "rate_per_s",
          "a rate above 0 and up to 1e9 per second", to_text(spec.trace.rate_per_s));
}

}  // namespace foretoken

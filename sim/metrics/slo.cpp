#include "sim/metrics/slo.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

[[noreturn]] void fail(std::string_view text, std::string_view expected, std::string_view found) {
  throw UsageError(input_error("--slo '" + std::string(text) + "'", expected, found).what());
}

/// A share in percent without the noise of binary fractions: 0.999 is "99.9".
std::string short_percent(double share) { return to_text(std::round(share * 1e8) / 1e6); }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

/// Cuts the comparison out of the text: what is before it and what is behind it.
struct Sides {
  std::string_view left;
  std::string_view right;
};

Sides cut(Slo& slo, std::string_view text) {
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) fail(text, "<, <=, > or >= and a limit", "no comparison");
  slo.below = text[at] == '<';
  slo.inclusive = at + 1 < text.size() && text[at + 1] == '=';
  Sides sides{trim(text.substr(0, at)), trim(text.substr(at + (slo.inclusive ? 2 : 1)))};
  if (sides.right.find_first_of("<>=") != std::string_view::npos) fail(text, "one comparison", quoted(text));
  return sides;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> names{"goodput"};
  for (std::size_t m = 0; m < kMetrics; ++m) names.emplace_back(metric_name(static_cast<Metric>(m)));
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::optional<double> parse_statistic(std::string_view text, std::string_view name) {
  if (name == "mean") return std::nullopt;
  if (name == "max") return 1.0;
  if (name.size() > 1 && name.front() == 'p') {
    const auto percent = parse_double(name.substr(1));
    if (percent && *percent > 0 && *percent < 100) return *percent / 100.0;
  }
  fail(text, "mean, max or a percentile such as p50, p95, p99.9", name.empty() ? "nothing" : quoted(name));
}

void parse_share(Slo& slo, std::string_view text, std::string_view limit) {
  const bool percent = !limit.empty() && limit.back() == '%';
  const auto value = parse_double(percent ? trim(limit.substr(0, limit.size() - 1)) : limit);
  if (!value) fail(text, "a share such as 0.99 or 99%", limit.empty() ? "nothing" : quoted(limit));
  slo.limit_share = percent ? *value / 100.0 : *value;
  if (slo.limit_share < 0 || slo.limit_share > 1)
    fail(text, "a share from 0 to 1 (or 0% to 100%)", quoted(limit));
}

void parse_latency(Slo& slo, std::string_view text, std::string_view name, std::string_view limit) {
  const std::size_t dot = name.find('.');
  const std::string_view metric_text = name.substr(0, dot);
  const auto metric = find_metric(metric_text);
  if (!metric) {
    const std::string near = nearest(metric_text, metric_names());
    fail(text, near.empty() ? "one of " + listed(metric_names()) : "a metric (did you mean " + near + "?)",
         metric_text.empty() ? "nothing" : quoted(metric_text));
  }
  slo.metric = *metric;
  if (dot == std::string_view::npos)
    fail(text, "a statistic, as in " + std::string(metric_text) + ".p99", quoted(metric_text));
  slo.quantile = parse_statistic(text, name.substr(dot + 1));
  if (parse_double(limit)) fail(text, "a duration with its unit (ns, us, ms, s, m, h)", quoted(limit));
  const auto limit_ps = parse_duration_ps(limit);
  if (!limit_ps || *limit_ps < 0)
    fail(text, "a duration such as 500ms or 1.5s", limit.empty() ? "nothing" : quoted(limit));
  slo.limit_ps = *limit_ps;
}

}  // namespace

Slo parse_slo(std::string_view text) {
  Slo slo;
  for (const char c : text)
    if (c != ' ' && c != '\t') slo.text.push_back(c);
  const Sides sides = cut(slo, slo.text);
  std::string_view name = sides.left;
  if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
    slo.class_name = name.substr(0, colon);
    if (slo.class_name.empty()) fail(text, "a class before the colon", "nothing");
    name = name.substr(colon + 1);
  }
  slo.is_latency = name != "goodput";
  if (slo.is_latency)
    parse_latency(slo, text, name, sides.right);
  else
    parse_share(slo, text, sides.right);
  return slo;
}

void resolve_slos(std::vector<Slo>& slos, const std::vector<std::string>& class_names) {
  for (Slo& slo : slos) {
    slo.class_index = -1;
    if (slo.class_name.empty()) continue;
    const auto at = std::find(class_names.begin(), class_names.end(), slo.class_name);
    if (at == class_names.end()) {
      const std::string near = nearest(slo.class_name, class_names);
      const std::string known = class_names.empty() ? "no class, since the requests have none"
                                : near.empty()      ? "one of the classes " + listed(class_names)
                                                    : "a class (did you mean " + near + "?)";
      fail(slo.text, known, quoted(slo.class_name));
    }
    slo.class_index = static_cast<std::int32_t>(at - class_names.begin());
  }
}

bool is_per_request(const Slo& slo) { return slo.is_latency && slo.below && slo.metric != Metric::gap; }

bool meets(const Slo& slo, double value) {
  const double limit = slo.is_latency ? static_cast<double>(slo.limit_ps) : slo.limit_share;
  if (slo.inclusive && value == limit) return true;
  return slo.below ? value < limit : value > limit;
}

std::string slo_text(const Slo& slo) {
  std::string text = slo.class_name.empty() ? "" : slo.class_name + ":";
  if (!slo.is_latency) {
    text += "goodput";
  } else {
    text.append(metric_name(slo.metric)).append(".");
    if (!slo.quantile)
      text += "mean";
    else if (*slo.quantile == 1.0)
      text += "max";
    else
      text += "p" + short_percent(*slo.quantile);
  }
  text += slo.below ? " <" : " >";
  text += slo.inclusive ? "= " : " ";
  return text + (slo.is_latency ? duration_text(slo.limit_ps) : short_percent(slo.limit_share) + " %");
}

}  // namespace foretoken

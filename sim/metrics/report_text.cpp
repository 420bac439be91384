#include "sim/base/text.hpp"
#include "sim/metrics/report_parts.hpp"

namespace foretoken {
namespace {

std::string cell_text(const Summary& summary, Statistic statistic) {
  return summary.count > 0 && summary.has(statistic) ? short_number(summary[statistic] * 1e-9) : "-";
}

/// A name as a Markdown cell: a bar would end it.
std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) {
    if (c == '|') cell += '\\';
    cell += c == '\n' || c == '\r' ? ' ' : c;
  }
  return cell;
}

void markdown_slos(std::string& out, const Report& report) {
  if (report.slos.empty()) return;
  out += "| threshold | | value | 95 % interval |\n|---|---|---:|---|\n";
  const auto value_text = [](const SloResult& slo, double value) {
    return slo.slo.is_latency ? duration_text(static_cast<std::int64_t>(value + 0.5)) : percent_text(value);
  };
  for (const SloResult& slo : report.slos) {
    out += "| " + markdown_cell(slo_text(slo.slo)) + (slo.pass ? " | pass | " : " | **FAIL** | ");
    out += (slo.has_value ? value_text(slo, slo.value) : "-") + " | ";
    if (slo.has_interval && slo.has_value)
      out += "[" + value_text(slo, slo.low) + ", " + value_text(slo, slo.high) + "]";
    out += " |\n";
  }
  out += '\n';
}

void markdown_group(std::string& out, const GroupReport& group) {
  out += "| latency (ms) | samples | mean | p50 | p90 | p95 | p99 | p99.9 | max |\n";
  out += "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (std::size_t m = 0; m < kMetrics; ++m) {
    const Summary& summary = group.metrics[m];
    if (summary.count == 0) continue;
    out.append("| ").append(metric_name(static_cast<Metric>(m))).append(" | ");
    out += with_commas(summary.count);
    for (std::size_t s = 0; s < kStatistics; ++s)
      out += " | " + cell_text(summary, static_cast<Statistic>(s));
    out += " |\n";
  }
  out += '\n';
}

void markdown_groups(std::string& out, const std::vector<GroupReport>& groups, std::string_view title) {
  if (groups.size() < 2) return;
  out.append("| ").append(title).append(
      " | offered | finished | goodput | ttft p50 (ms) | ttft p99 (ms) | tpot p50 (ms) |\n");
  out += "|---|---:|---:|---:|---:|---:|---:|\n";
  for (const GroupReport& group : groups) {
    out += "| " + markdown_cell(group.name) + " | " + with_commas(group.totals.offered) + " | " +
           with_commas(group.totals.finished) + " | " + (group.goodput ? percent_text(*group.goodput) : "-") +
           " | " + cell_text(group.metrics[index(Metric::ttft)], Statistic::p50) + " | " +
           cell_text(group.metrics[index(Metric::ttft)], Statistic::p99) + " | " +
           cell_text(group.metrics[index(Metric::tpot)], Statistic::p50) + " |\n";
  }
  out += '\n';
}

void csv_lines(std::string& out, std::string_view scope, const std::string& name, const Summary* metrics,
               std::size_t count) {
  for (std::size_t m = 0; m < count; ++m) {
    const Summary& summary = metrics[m];
    out.append(scope).append(",");
    if (name.find_first_of(",\"\r\n") != std::string::npos) {
      out += '"';
      for (const char c : name) out.append(c == '"' ? "\"\"" : std::string(1, c));
      out += '"';
    } else {
      out += name;
    }
    out.append(",").append(metric_name(static_cast<Metric>(m))).append(",ms,");
    out += std::to_string(summary.count) + "," + std::to_string(summary.excluded);
    for (std::size_t s = 0; s < kStatistics; ++s) {
      out += ',';
      if (summary.count > 0) out += to_text(summary.value_ps[s] * 1e-9);
    }
    out += '\n';
  }
}

}  // namespace

std::string report_markdown(const Report& report, const ReportContext& context) {
  std::string out;
  if (!context.source_line.empty()) out += context.source_line + "\n\n";
  markdown_slos(out, report);
  markdown_group(out, report.whole);
  markdown_groups(out, report.classes, "class");
  markdown_groups(out, report.tenants, "tenant");
  markdown_groups(out, report.sources, "source");
  const RequestTotals& totals = report.whole.totals;
  const std::array<double, 5> shares = time_shares(totals);
  out += "| | |\n|---|---|\n";
  const auto line = [&](std::string_view label, const std::string& text) {
    out.append("| ").append(label).append(" | ").append(text).append(" |\n");
  };
  line("requests", with_commas(totals.offered) + " offered, " + with_commas(totals.finished) + " finished, " +
                       with_commas(totals.refused()) + " refused, " + with_commas(totals.cancelled) +
                       " cancelled, " + with_commas(totals.unfinished) + " unfinished");
  line("throughput", short_number(report.whole.finished_per_s) + " req/s, " +
                         short_number(report.whole.delivered_tokens_per_s) + " out tok/s");
  line("goodput", report.whole.goodput ? percent_text(*report.whole.goodput) : "-");
  line("where time went", "queue " + percent_text(shares[0]) + ", prefill " + percent_text(shares[1]) +
                              ", decode " + percent_text(shares[2]) + ", preempted " +
                              percent_text(shares[3]) + ", stalled " + percent_text(shares[4]));
  const auto limit = binding_limit(report.limits);
  line("limit", limit ? std::string(limit_name(*limit)) : "none");
  line("busy", percent_text(report.busy_share));
  for (const WarningText& warning : report.warnings)
    line("warning", markdown_cell(warning.text + ": " + warning.advice));
  if (!report.hint.empty()) line("hint", markdown_cell(report.hint));
  return out;
}

std::string report_csv(const Report& report) {
  std::string out = "scope,name,metric,unit,count,excluded";
  for (std::size_t s = 0; s < kStatistics; ++s)
    out.append(",").append(statistic_name(static_cast<Statistic>(s)));
  out += '\n';
  csv_lines(out, "all", "", report.whole.metrics.data(), kMetrics);
  csv_lines(out, "steady", "", report.steady.metrics.data(), kRequestMetrics);
  for (const GroupReport& group : report.classes)
    csv_lines(out, "class", group.name, group.metrics.data(), kMetrics);
  for (const GroupReport& group : report.tenants)
    csv_lines(out, "tenant", group.name, group.metrics.data(), kMetrics);
  for (const GroupReport& group : report.sources)
    csv_lines(out, "source", group.name, group.metrics.data(), kMetrics);
  return out;
}

}  // namespace foretoken

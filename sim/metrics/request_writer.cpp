#include "sim/metrics/request_writer.hpp"

#include <array>
#include <cstddef>

#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 18;
constexpr std::array<std::string_view, 4> kOutcomes{"finished", "cancelled", "refused", "unfinished"};

/// Picoseconds as milliseconds, shortest text that reads back the same.
std::string milliseconds(std::int64_t ps) { return to_text(static_cast<double>(ps) * 1e-9); }

std::string group_name(const std::vector<std::string>& names, std::size_t group) {
  return group < names.size() ? names[group] : std::to_string(group);
}

/// A CSV field (RFC 4180): quoted where it holds a separator, a quote or a line break.
void append_field(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_csv(std::string& out, const RequestRecord& record, const GroupNames& names) {
  out += std::to_string(static_cast<std::uint32_t>(record.id));
  out.append(",").append(outcome_name(record.outcome)).append(",");
  append_field(out, group_name(names.classes, record.slo_class));
  out += ',';
  append_field(out, group_name(names.tenants, record.tenant));
  out += ',';
  append_field(out, group_name(names.sources, record.source));
  for (const std::int32_t count :
       {record.prompt_tokens, record.output_tokens, record.cached_tokens, record.preemptions})
    out.append(",").append(std::to_string(count));
  out.append(record.truncated ? ",1" : ",0").append(record.good ? ",1" : ",0");
  out.append(",").append(milliseconds(record.arrival_ps)).append(",").append(milliseconds(record.end_ps));
  for (const std::int64_t value : record.value_ps) {
    out += ',';
    if (value >= 0) out += milliseconds(value);
  }
  out += '\n';
}

void append_jsonl(std::string& out, const RequestRecord& record, const GroupNames& names) {
  Json line = Json::object({{"id", static_cast<std::int64_t>(record.id)},
                            {"outcome", outcome_name(record.outcome)},
                            {"class", group_name(names.classes, record.slo_class)},
                            {"tenant", group_name(names.tenants, record.tenant)},
                            {"source", group_name(names.sources, record.source)},
                            {"prompt_tokens", record.prompt_tokens},
                            {"output_tokens", record.output_tokens},
                            {"cached_tokens", record.cached_tokens},
                            {"preemptions", record.preemptions},
                            {"truncated", record.truncated},
                            {"good", record.good},
                            {"arrival_ms", static_cast<double>(record.arrival_ps) * 1e-9},
                            {"end_ms", static_cast<double>(record.end_ps) * 1e-9}});
  for (std::size_t m = 0; m < kRequestMetrics; ++m) {
    if (record.value_ps[m] < 0) continue;
    line.set(std::string(metric_name(static_cast<Metric>(m))) + "_ms",
             static_cast<double>(record.value_ps[m]) * 1e-9);
  }
  line.dump_to(out);
  out += '\n';
}

}  // namespace

std::string_view outcome_name(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }

RequestWriter::RequestWriter(std::string path, RequestFormat format, const GroupNames& names)
    : file_(std::move(path)), format_(format), names_(&names) {
  if (format_ != RequestFormat::csv) return;
  buffer_ =
      "id,outcome,class,tenant,source,prompt_tokens,output_tokens,cached_tokens,preemptions,truncated,good,"
      "arrival_ms,end_ms";
  for (std::size_t m = 0; m < kRequestMetrics; ++m)
    buffer_.append(",").append(metric_name(static_cast<Metric>(m))).append("_ms");
  buffer_ += '\n';
}

void RequestWriter::write(const RequestRecord& record) {
  if (format_ == RequestFormat::csv)
    append_csv(buffer_, record, *names_);
  else
    append_jsonl(buffer_, record, *names_);
  if (buffer_.size() < kFlushBytes) return;
  file_.write(buffer_);
  buffer_.clear();
}

void RequestWriter::commit() {
  file_.write(buffer_);
  buffer_.clear();
  file_.commit();
}

}  // namespace foretoken

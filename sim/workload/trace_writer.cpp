#include "sim/workload/trace_writer.hpp"

#include "sim/base/check.hpp"
#include "sim/workload/trace_number.hpp"

namespace foretoken {
namespace {

void append_text(std::string& out, std::string_view key, const std::string& value) {
  if (value.empty()) return;
  out.append(",\"").append(key).append("\":");
  Json(value).dump_to(out);
}

void append_number(std::string& out, std::string_view key, std::int64_t value) {
  out.append(",\"").append(key).append("\":").append(std::to_string(value));
}

void append_wait(std::string& out, std::string_view key, Duration wait) {
  if (wait != kForever)
    out.append(",\"").append(key).append("\":").append(decimal_seconds(wait.count() / 1000));
}

}  // namespace

std::string decimal_seconds(std::int64_t nanoseconds) {
  FT_CHECK(nanoseconds >= 0, nanoseconds);
  constexpr std::int64_t per_second = 1'000'000'000;
  std::string text = std::to_string(nanoseconds / per_second);
  if (nanoseconds % per_second == 0) return text;
  const std::string fraction = std::to_string(per_second + nanoseconds % per_second);
  text.append(".").append(fraction, 1);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

void append_canonical(std::string& out, const TraceRecord& record, std::int32_t header_block_tokens) {
  out += '{';
  if (!record.id.empty()) {
    out.append("\"id\":");
    Json(record.id).dump_to(out);
    out += ',';
  }
  if (record.after_id.empty()) {
    out.append("\"arrival_s\":").append(decimal_seconds(record.arrival_ns));
  } else {
    out.append("\"after\":{\"id\":");
    Json(record.after_id).dump_to(out);
    out.append(",\"delay_s\":").append(decimal_seconds(record.after_delay_ns)).append("}");
  }
  append_number(out, "input_tokens", record.input_tokens);
  append_number(out, "output_tokens", record.output_tokens);
  if (record.max_new_tokens >= 0 && record.output_tokens > 0) {
    append_number(out, "max_new_tokens", record.max_new_tokens);
  }
  append_text(out, "session", record.session);
  if (record.turn != 0) append_number(out, "turn", record.turn);
  if (record.priority != 0) append_number(out, "priority", record.priority);
  if (!record.prefix_hashes.empty()) {
    out.append(",\"prefix_hashes\":[");
    for (std::size_t i = 0; i < record.prefix_hashes.size(); ++i) {
      if (i > 0) out += ',';
      out.append(std::to_string(record.prefix_hashes[i]));
    }
    out += ']';
    if (record.block_tokens != header_block_tokens) append_number(out, "block_tokens", record.block_tokens);
  }
  append_text(out, "tenant", record.tenant);
  append_text(out, "slo_class", record.slo_class);
  append_text(out, "model", record.model);
  append_text(out, "source", record.source);
  append_wait(out, "patience_s", record.patience);
  append_wait(out, "cancel_after_s", record.cancel_after);
  out += '}';
}

TraceWriter::TraceWriter(std::string path, const Json& header) : file_(std::move(path)) {
  Json full = Json::object({{"foretoken_trace", 1}});
  if (header.is_object()) {
    for (const auto& [key, value] : header.as_object()) {
      if (key != "foretoken_trace") full.set(key, value);
    }
  }
  if (const Json* block_tokens = full.find("block_tokens")) {
    block_tokens_ = static_cast<std::int32_t>(block_tokens->as_int64());
  }
  file_.write(full.dump() + "\n");
}

void TraceWriter::write(const TraceRecord& record) {
  line_.clear();
  append_canonical(line_, record, block_tokens_);
  line_ += '\n';
  file_.write(line_);
}

void TraceWriter::commit() { file_.commit(); }

}  // namespace foretoken

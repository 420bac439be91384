#include <cmath>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/workload/json_row.hpp"
#include "sim/workload/lengths.hpp"
#include "sim/workload/row_parser.hpp"

namespace foretoken {
namespace {

const std::vector<std::string>& row_keys() {
  static const std::vector<std::string> keys{
      "id",        "arrival_s", "after",    "input_tokens",  "output_tokens", "max_new_tokens",
      "session",   "turn",      "priority", "prefix_hashes", "block_tokens",  "tenant",
      "slo_class", "model",     "source",   "patience_s",    "cancel_after_s"};
  return keys;
}

class CanonicalRows final : public RowParser {
 public:
  explicit CanonicalRows(TraceInfo& info) : info_(info) {}

  bool parse(std::string_view line, std::int64_t number, TraceRecord& record) override {
    const JsonRow row(line, info_.path, number);
    if (row.find("foretoken_trace") != nullptr) {
      read_header(row);
      return false;
    }
    began_ = true;
    record.block_tokens = info_.block_tokens;
    record.input_tokens = record.output_tokens = -1;
    bool has_arrival = false;
    for (const auto& [key, value] : row.json().as_object()) {
      if (key == "arrival_s") has_arrival = true;
      if (!read_member(row, key, value, record)) refuse_key(row, key);
    }
    if (has_arrival == !record.after_id.empty())
      row.fail("", "either arrival_s or after", has_arrival ? "both" : "neither");
    if (record.input_tokens < 0) row.fail("", "a member \"input_tokens\"", "none");
    if (record.output_tokens < 0) row.fail("", "a member \"output_tokens\"", "none");
    check(row, record);
    return true;
  }

 private:
  void read_header(const JsonRow& row) {
    if (began_)
      row.fail("foretoken_trace", "one header, on the first line", "a second one or one behind rows");
    began_ = true;
    row.integer("foretoken_trace", 1, 1);
    info_.header = row.json();
    if (row.find("block_tokens") != nullptr) {
      info_.block_tokens = static_cast<std::int32_t>(row.integer("block_tokens", 1, kTokensMax));
    }
  }

  static std::int32_t count(const JsonRow& row, std::string_view key, const Json& value, std::int64_t low) {
    return static_cast<std::int32_t>(row.integer(value, key, low, kTokensMax));
  }

  static Duration wait(const JsonRow& row, std::string_view key, const Json& value) {
    const std::int64_t ns = row.seconds_ns(value, key);
    return ns > kForever.count() / 1000 ? kForever : Duration(ns * 1000);
  }

  static void read_after(const JsonRow& row, const Json& value, TraceRecord& record) {
    if (!value.is_object()) row.fail("after", "an object {id, delay_s}", value.describe());
    const Json* id = value.find("id");
    const Json* delay = value.find("delay_s");
    if (id == nullptr || delay == nullptr || value.as_object().size() != 2) {
      row.fail("after", "the members id and delay_s", value.dump());
    }
    row.text(*id, "after/id", record.after_id);
    if (record.after_id.empty()) row.fail("after/id", "the id of an earlier request", "an empty string");
    record.after_delay_ns = row.seconds_ns(*delay, "after/delay_s");
  }

  /// False for a key that means nothing here.
  static bool read_member(const JsonRow& row, const std::string& key, const Json& value,
                          TraceRecord& record) {
    if (key == "arrival_s") {
      record.arrival_ns = row.seconds_ns(value, key);
    } else if (key == "after") {
      read_after(row, value, record);
    } else if (key == "input_tokens") {
      record.input_tokens = count(row, key, value, 0);
    } else if (key == "output_tokens") {
      record.output_tokens = count(row, key, value, 0);
    } else if (key == "max_new_tokens") {
      record.max_new_tokens = count(row, key, value, 0);
    } else if (key == "id") {
      row.text(value, key, record.id);
    } else if (key == "session") {
      row.text(value, key, record.session);
    } else if (key == "turn") {
      record.turn = count(row, key, value, 0);
    } else if (key == "priority") {
      record.priority = count(row, key, value, -kTokensMax);
    } else if (key == "prefix_hashes") {
      row.hashes(value, key, record.prefix_hashes);
    } else if (key == "block_tokens") {
      record.block_tokens = count(row, key, value, 1);
    } else if (key == "tenant") {
      row.text(value, key, record.tenant);
    } else if (key == "slo_class") {
      row.text(value, key, record.slo_class);
    } else if (key == "source") {
      row.text(value, key, record.source);
    } else if (key == "model") {
      row.text(value, key, record.model);
    } else if (key == "patience_s") {
      record.patience = wait(row, key, value);
    } else if (key == "cancel_after_s") {
      record.cancel_after = wait(row, key, value);
    } else {
      return false;
    }
    return true;
  }

  [[noreturn]] static void refuse_key(const JsonRow& row, const std::string& key) {
    const std::string near = nearest(key, row_keys());
    row.fail(key, "a known key",
             "the unknown key \"" + key + "\"" + (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
  }

  static void check(const JsonRow& row, TraceRecord& record) {
    if (record.output_tokens == 0 && record.max_new_tokens > 0) {
      row.fail("max_new_tokens", "0 with output_tokens 0 (an embedding)",
               std::to_string(record.max_new_tokens));
    }
    if (record.output_tokens == 0) record.max_new_tokens = 0;
    if (record.output_tokens > 0 && record.max_new_tokens == 0) {
      row.fail("max_new_tokens", "at least 1 with output_tokens above 0", "0");
    }
    if (record.prefix_hashes.empty()) return;
    if (record.block_tokens == 0)
      row.fail("", "block_tokens beside prefix_hashes (or in the header)", "none");
    const std::int64_t blocks = blocks_begun(record.input_tokens, record.block_tokens);
    if (static_cast<std::int64_t>(record.prefix_hashes.size()) > blocks) {
      row.fail("prefix_hashes",
               "at most " + std::to_string(blocks) + " hashes of " + std::to_string(record.block_tokens) +
                   "-token blocks for " + std::to_string(record.input_tokens) + " tokens",
               std::to_string(record.prefix_hashes.size()));
    }
  }

  TraceInfo& info_;
  bool began_ = false;
};

}  // namespace

std::unique_ptr<RowParser> make_canonical_parser(TraceInfo& info) {
  return std::make_unique<CanonicalRows>(info);
}

}  // namespace foretoken

#include <limits>

#include "sim/workload/json_row.hpp"
#include "sim/workload/lengths.hpp"
#include "sim/workload/row_parser.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kMillisecondsMax = 9'200'000'000'000;

/// Mooncake's JSONL (whole milliseconds, blocks of 512 tokens) and Bailian's (seconds, blocks of 16, chats
/// and turns).
class HashTraceRows final : public RowParser {
 public:
  HashTraceRows(TraceFormat format, TraceInfo& info) : format_(format), info_(info) {
    info.block_tokens = facts(format).block_tokens;
  }

  bool parse(std::string_view line, std::int64_t number, TraceRecord& record) override {
    const JsonRow row(line, info_.path, number);
    record.input_tokens = static_cast<std::int32_t>(row.integer("input_length", 0, kTokensMax));
    record.output_tokens = static_cast<std::int32_t>(row.integer("output_length", 0, kTokensMax));
    record.block_tokens = facts(format_).block_tokens;
    if (const Json* hashes = row.find("hash_ids")) row.hashes(*hashes, "hash_ids", record.prefix_hashes);
    if (format_ == TraceFormat::mooncake) {
      record.arrival_ns = row.integer("timestamp", 0, kMillisecondsMax) * 1'000'000;
    } else {
      read_bailian(row, record);
    }
    check_blocks(row, record);
    return true;
  }

 private:
  void read_bailian(const JsonRow& row, TraceRecord& record) const {
    const Json* timestamp = row.find("timestamp");
    if (timestamp == nullptr) row.fail("", "a member \"timestamp\"", "none");
    record.arrival_ns = row.seconds_ns(*timestamp, "timestamp");
    if (const Json* chat = row.find("chat_id")) row.text(*chat, "chat_id", record.id);
    if (const Json* parent = row.find("parent_chat_id")) {
      row.text(*parent, "parent_chat_id", record.session);
      // The parent names the turn before; a root (-1) begins a session of its own.
      if (record.session == "-1") record.session = record.id;
    }
    if (row.find("turn") != nullptr)
      record.turn = static_cast<std::int32_t>(row.integer("turn", 0, kTokensMax));
    if (const Json* type = row.find("type")) row.text(*type, "type", record.source);
  }

  /// Mooncake's rows have exactly one hash per begun block, so another number means another block size or
  /// unit. Bailian's count templates differently, and what goes beyond the prompt is cut and counted.
  void check_blocks(const JsonRow& row, TraceRecord& record) const {
    const auto blocks = static_cast<std::size_t>(blocks_begun(record.input_tokens, record.block_tokens));
    if (record.prefix_hashes.size() <= blocks) return;
    if (format_ == TraceFormat::bailian) {
      record.prefix_hashes.resize(blocks);
      ++info_.counts.hashes_cut;
      return;
    }
    row.fail("hash_ids",
             "at most " + std::to_string(blocks) + " hashes of " + std::to_string(record.block_tokens) +
                 "-token blocks for " + std::to_string(record.input_tokens) + " tokens",
             std::to_string(record.prefix_hashes.size()));
  }

  TraceFormat format_;
  TraceInfo& info_;
};

}  // namespace

std::unique_ptr<RowParser> make_hash_trace_parser(TraceFormat format, TraceInfo& info) {
  return std::make_unique<HashTraceRows>(format, info);
}

}  // namespace foretoken

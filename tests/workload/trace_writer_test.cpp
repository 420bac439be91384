#include "sim/workload/trace_writer.hpp"

#include "sim/base/files.hpp"
#include "sim/core/random.hpp"
#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

TraceRecord drawn(std::uint64_t i) {
  const RandomStream draws(7, i);
  TraceRecord record;
  record.id = "r" + std::to_string(i);
  record.arrival_ns = static_cast<std::int64_t>(i) * 1'000'000'000'000 + draws.integer(0, 0, 999'999'999);
  if (i > 0 && draws.uniform(1) < 0.3) {
    record.arrival_ns = 0;
    record.after_id = "r" + std::to_string(i - 1);
    record.after_delay_ns = draws.integer(2, 0, 4'000'000'000);
  }
  record.input_tokens = static_cast<std::int32_t>(draws.integer(3, 1, 5000));
  record.output_tokens = static_cast<std::int32_t>(draws.integer(4, 0, 3));
  if (record.output_tokens == 0) record.max_new_tokens = 0;
  if (record.output_tokens > 0 && draws.uniform(5) < 0.5) record.max_new_tokens = 700;
  record.priority = static_cast<std::int32_t>(draws.integer(6, -1, 1));
  record.turn = static_cast<std::int32_t>(draws.integer(7, 0, 2));
  record.block_tokens = 16;
  if (draws.uniform(8) < 0.5) {
    record.prefix_hashes.push_back(draws.bits(9));
    record.block_tokens = draws.uniform(10) < 0.5 ? 16 : 512;
  }
  record.session = draws.uniform(11) < 0.5 ? "a \"quoted\" one\t\\" : "";
  record.tenant = draws.uniform(12) < 0.5 ? "t" : "";
  record.slo_class = draws.uniform(13) < 0.5 ? "chat" : "";
  record.source = draws.uniform(14) < 0.5 ? "web" : "";
  record.model = draws.uniform(15) < 0.5 ? "m" : "";
  if (draws.uniform(16) < 0.5) record.patience = std::chrono::milliseconds(draws.integer(17, 0, 90'000));
  if (draws.uniform(18) < 0.5) record.cancel_after = std::chrono::nanoseconds(draws.integer(19, 0, 90'000));
  return record;
}

}  // namespace

TEST_CASE("what the canonical writer writes reads back as the same records", "[property]") {
  const ScratchFile file("written.jsonl", "");
  TraceWriter writer(file.path(), Json::object({{"source", "drawn"}, {"block_tokens", 16}}));
  for (std::uint64_t i = 0; i < 300; ++i) writer.write(drawn(i));
  writer.commit();
  TraceReader reader(file.path());
  TraceRecord record;
  std::uint64_t i = 0;
  for (; reader.next(record); ++i) {
    TraceRecord expected = drawn(i);
    // Without hashes the size of a block is the header's.
    if (expected.prefix_hashes.empty()) expected.block_tokens = 16;
    std::string is, should;
    append_canonical(is, record, 0);
    append_canonical(should, expected, 0);
    CHECK(is == should);
    CHECK(record.arrival_ns == expected.arrival_ns);
    CHECK(record.patience == expected.patience);
    CHECK(record.cancel_after == expected.cancel_after);
    CHECK(record.max_new_tokens == expected.max_new_tokens);
  }
  CHECK(i == 300);
  CHECK(reader.info().header.find("source")->as_string() == "drawn");
  CHECK(reader.info().header.as_object().front().first == "foretoken_trace");
}

TEST_CASE("nothing is at the path before the trace is whole", "[unit]") {
  const std::string path = ScratchFile("gone.jsonl", "").path();
  {
    TraceWriter writer(path, Json());
    writer.write(drawn(0));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

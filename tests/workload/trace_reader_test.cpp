#include "sim/workload/trace_reader.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

const std::string kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:03.9799601,3180,8\r\n"
    "2023-11-17 00:00:00.0000000,110,27";

bool has(const std::vector<WorkloadWarning>& warnings, WorkloadWarning warning) {
  return std::find(warnings.begin(), warnings.end(), warning) != warnings.end();
}

TraceReader drained(const std::string& text, const TraceReadOptions& options = {}) {
  TraceReader reader = TraceReader::from_text(text, "t", options);
  TraceRecord record;
  while (reader.next(record)) {
  }
  return reader;
}

}  // namespace

TEST_CASE("azure rows keep 100 ns, count from the first row, and the last row needs no newline", "[unit]") {
  const auto rows = read_all(kAzure);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].arrival_ns == 0);
  CHECK(rows[1].arrival_ns == 100);
  CHECK(rows[2].arrival_ns == 20'576'020'040'000);
  CHECK(rows[0].input_tokens == 4808);
  CHECK(rows[2].output_tokens == 27);
  CHECK(rows[2].line == 4);
}

TEST_CASE("azure traces carry a warning that they know nothing of prefixes", "[unit]") {
  const TraceReader reader = drained(kAzure);
  CHECK(reader.info().format == TraceFormat::azure);
  CHECK(reader.info().block_tokens == 0);
  CHECK(has(reader.warnings(), WorkloadWarning::no_prefix_data));
}

TEST_CASE("the azure week of 2024 has zones, and columns of other years are named as ignored", "[unit]") {
  const TraceReader reader =
      drained("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15 00:00:00.015000+00:00,0,10,2\n");
  CHECK(reader.info().format == TraceFormat::azure);
  CHECK(reader.info().ignored_columns == std::vector<std::string>{"NumImages"});
}

TEST_CASE("burstgpt columns are found by header, with and without sessions, and failures are dropped",
          "[unit]") {
  const std::string plain =
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118.5,GPT-4,417,276,693,API "
      "log\n";
  const std::string sessions =
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,7,1.5,ChatGPT,472,18,490,Conversation log\n45,,0,GPT-4,1087,0,1087,API log\n"
      "118.5,,2,GPT-4,417,276.0,693,API log\n";
  for (const std::string& text : {plain, sessions}) {
    const auto rows = read_all(text);
    REQUIRE(rows.size() == 2);
    CHECK(rows[1].arrival_ns == 113'500'000'000);
    CHECK(rows[1].input_tokens == 417);
    CHECK(rows[1].output_tokens == 276);
    CHECK(rows[1].model == "GPT-4");
    CHECK(rows[1].source == "API log");
    const TraceReader reader = drained(text);
    CHECK(reader.info().format == TraceFormat::burstgpt);
    CHECK(reader.info().counts.rows == 3);
    CHECK(reader.info().counts.zero_output_dropped == 1);
    CHECK(has(reader.warnings(), WorkloadWarning::zero_output_dropped));
  }
  CHECK(read_all(sessions)[0].session == "7");
}

TEST_CASE("failures can be kept on demand, as requests for no token", "[unit]") {
  TraceReadOptions options;
  options.zero_output = ZeroOutput::keep;
  const auto rows = read_all("arrival_s,input_tokens,output_tokens\n0,5,0\n", options);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].max_new_tokens == 0);
}

TEST_CASE("mooncake counts milliseconds and blocks of 512, bailian seconds and blocks of 16", "[unit]") {
  const std::string mooncake =
      R"({"timestamp": 27482, "input_length": 600, "output_length": 52, )"
      R"("hash_ids": [46, 18446744073709551615]})"
      "\n"
      R"({"timestamp": 30482, "input_length": 512, "output_length": 26, "hash_ids": [46]})";
  const auto slow = read_all(mooncake);
  REQUIRE(slow.size() == 2);
  CHECK(slow[1].arrival_ns == 3'000'000'000);
  CHECK(slow[0].block_tokens == 512);
  CHECK(slow[0].prefix_hashes == std::vector<std::uint64_t>{46, 18446744073709551615u});

  const std::string bailian =
      R"({"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 33, )"
      R"("output_length": 19, "type": "text", "turn": 1, "hash_ids": [1, 2, 3, 4]})";
  const TraceReader reader = drained(bailian);
  CHECK(reader.info().format == TraceFormat::bailian);
  CHECK(reader.info().block_tokens == 16);
  CHECK(reader.info().counts.hashes_cut == 1);
  CHECK(has(reader.warnings(), WorkloadWarning::hashes_cut));
  const auto rows = read_all(bailian);
  CHECK(rows[0].id == "159");
  CHECK(rows[0].session == "159");
  CHECK(rows[0].turn == 1);
  CHECK(rows[0].prefix_hashes.size() == 3);
}

TEST_CASE("hashes of another block size are no mooncake trace", "[unit]") {
  const std::string text =
      R"({"timestamp": 0, "input_length": 33, "output_length": 19, "hash_ids": [1, 2, 3]})";
  CHECK(fault_of(text) ==
        "t:1: /hash_ids: expected at most 1 hashes of 512-token blocks for 33 tokens, found 3");
}

TEST_CASE("the canonical trace says all that a request can be", "[unit]") {
  const std::string text =
      R"({"foretoken_trace":1,"source":"a test","license":"CC0","block_tokens":16})"
      "\n"
      R"({"id":"a","arrival_s":0.000000001,"input_tokens":40,"output_tokens":3,"max_new_tokens":9,)"
      R"("session":"s","turn":1,"priority":-2,"prefix_hashes":[5,6],"tenant":"t","slo_class":"chat",)"
      R"("model":"m","source":"web",)"
      R"("patience_s":2.5,"cancel_after_s":60})"
      "\n"
      R"({"id":"b","after":{"id":"a","delay_s":1.5},"input_tokens":50,"output_tokens":0,"prefix_hashes":[5],)"
      R"("block_tokens":32})"
      "\n";
  const auto rows = read_all(text);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].arrival_ns == 1);
  CHECK(rows[0].max_new_tokens == 9);
  CHECK(rows[0].priority == -2);
  CHECK(rows[0].block_tokens == 16);
  CHECK(rows[0].patience == std::chrono::milliseconds(2500));
  CHECK(rows[0].cancel_after == std::chrono::seconds(60));
  CHECK(rows[1].after_id == "a");
  CHECK(rows[1].after_delay_ns == 1'500'000'000);
  CHECK(rows[1].max_new_tokens == 0);
  CHECK(rows[1].block_tokens == 32);
  const TraceReader reader = drained(text);
  CHECK(reader.info().header.find("license")->as_string() == "CC0");
  CHECK(reader.info().counts.zero_output_dropped == 0);
}

TEST_CASE("plain CSV columns are known by names with units, or by a mapping", "[unit]") {
  const auto rows = read_all(
      "\xef\xbb\xbf"
      "id,arrival_ms,prompt_tokens,output_tokens,tenant,patience_s,note\n"
      "1,10,5,6,\"a, \"\"b\"\"\",,x\n2,10.5,5,6,c,1.5,\"\"\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].tenant == "a, \"b\"");
  CHECK(rows[0].patience == kForever);
  CHECK(rows[1].arrival_ns == 500'000);
  CHECK(rows[1].patience == std::chrono::milliseconds(1500));

  TraceReadOptions options;
  options.columns = parse_columns("arrival_us=when,input_tokens=in,output_tokens=out");
  const auto mapped = read_all("out,in,when\n3,2,1000000\n5,4,1000007\n", options);
  REQUIRE(mapped.size() == 2);
  CHECK(mapped[1].arrival_ns == 7'000);
  CHECK(mapped[1].input_tokens == 4);
  CHECK(mapped[1].output_tokens == 5);
}

TEST_CASE("rows out of order are refused, or sorted where that is wanted", "[unit]") {
  const std::string text = "arrival_s,input_tokens,output_tokens\n3,1,1\n1,2,1\n3,3,1\n2,4,1\n";
  CHECK(fault_of(text) == "t:3: expected arrivals in order (at or after 3 s), found 1 s; --sort sorts them");
  TraceReadOptions options;
  options.sort = true;
  const auto rows = read_all(text, options);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].input_tokens == 2);
  CHECK(rows[1].input_tokens == 4);
  CHECK(rows[2].input_tokens == 1);
  CHECK(rows[3].input_tokens == 3);
  CHECK(rows[3].arrival_ns == 2'000'000'000);
  const TraceReader reader = drained(text, options);
  CHECK(reader.info().counts.out_of_order == 2);
  CHECK(has(reader.warnings(), WorkloadWarning::sorted));
}

TEST_CASE("ties are spread over the tick, in order, the same way every time", "[property]") {
  std::string text = "arrival_s,input_tokens,output_tokens\n";
  for (int tick = 0; tick < 50; ++tick) {
    for (int i = 0; i < 1 + tick % 7; ++i)
      text += std::to_string(3 * tick) + "," + std::to_string(tick + 1) + ",1\n";
  }
  TraceReadOptions options;
  options.spread_ties = SpreadTies::uniform;
  const auto rows = read_all(text, options);
  const auto again = read_all(text, options);
  REQUIRE(rows.size() == read_all(text).size());
  std::int64_t last_ns = 0, distinct = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t tick_ns = (rows[i].input_tokens - 1) * 3'000'000'000LL;
    CHECK(rows[i].arrival_ns >= tick_ns);
    CHECK(rows[i].arrival_ns < tick_ns + 3'000'000'000LL);
    CHECK(rows[i].arrival_ns >= last_ns);
    CHECK(rows[i].arrival_ns == again[i].arrival_ns);
    distinct += rows[i].arrival_ns != last_ns;
    last_ns = rows[i].arrival_ns;
  }
  CHECK(distinct >= static_cast<std::int64_t>(rows.size()) - 2);
  CHECK(has(drained(text).warnings(), WorkloadWarning::quantised_arrivals));
  CHECK(has(drained(text, options).warnings(), WorkloadWarning::ties_spread));
}

TEST_CASE("a format given by hand overrides what the first row looks like", "[unit]") {
  TraceReadOptions options;
  options.format = TraceFormat::mooncake;
  const std::string text = R"({"timestamp": 5, "input_length": 3, "output_length": 1})";
  CHECK(fault_of(text).find("t:1: expected a row of a known JSONL trace") == 0);
  CHECK(read_all(text, options).size() == 1);
}

#include "cli/trace_command.hpp"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "sim/workload/workload_json.hpp"
#include "tests/catch.hpp"

using namespace foretoken;

namespace {

const std::string kRows =
    "arrival_s,input_tokens,output_tokens,tenant,note\n"
    "100,10,5,north,\n101,20,6,south,\n101,25,0,south,\n104,30,7,south,\n110,40,8,north,\n";

/// A folder with a trace in it that is gone at the end of the scope.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / ("foretoken-trace-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
    write_file(at("rows.csv"), kRows);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  TraceInput input(const std::string& name = "rows.csv") const { return {at(name), {}}; }

 private:
  std::filesystem::path path_;
};

std::string sample(const std::string& name) {
  return std::string(FORETOKEN_SOURCE_DIR) + "/scenarios/traces/" + name;
}

std::vector<TraceRecord> rows_of(const std::string& path) {
  TraceReader reader(path);
  std::vector<TraceRecord> rows;
  TraceRecord record;
  while (reader.next(record)) rows.push_back(record);
  return rows;
}

}  // namespace

TEST_CASE("the command in its own description makes the sample trace byte for byte", "[golden]") {
  const Folder folder;
  std::ostringstream log;
  const WorkloadSpec workload = read_workload_file(sample("sample-chat.workload.json"));
  trace_synth({workload, folder.at("again.jsonl"), "", ""}, log);
  CHECK(read_file(folder.at("again.jsonl")) == read_file(sample("sample-chat.jsonl")));
  CHECK(log.str().find("400 requests") != std::string::npos);
}

TEST_CASE("a synthesised trace replays the very requests it was made of", "[property]") {
  const WorkloadSpec workload = read_workload_file(sample("sample-chat.workload.json"));
  WorkloadSpec replay;
  replay.arrivals.kind = ArrivalKind::trace;
  replay.trace.path = sample("sample-chat.jsonl");
  const auto made = make_source(workload), read = make_source(replay);
  std::int64_t count = 0;
  for (; made->next_time() != kNever; ++count) {
    REQUIRE(read->next_time() == made->next_time());
    const Offer a = made->pop(), b = read->pop();
    CHECK(a.request.prompt_tokens == b.request.prompt_tokens);
    CHECK(a.request.max_new_tokens == b.request.max_new_tokens);
    CHECK(a.request.priority == b.request.priority);
    CHECK(a.output_tokens == b.output_tokens);
    CHECK(std::vector(a.request.prefix_hashes.begin(), a.request.prefix_hashes.end()) ==
          std::vector(b.request.prefix_hashes.begin(), b.request.prefix_hashes.end()));
    CHECK(made->names().slo_classes[a.request.slo_class] == read->names().slo_classes[b.request.slo_class]);
  }
  CHECK(count == 400);
  CHECK(read->next_time() == kNever);
}

TEST_CASE("inspect says the format, the figures and what to mind, within 100 columns", "[unit]") {
  const Folder folder;
  std::ostringstream out, log;
  trace_inspect({folder.input(), false}, out, log);
  const std::string text = out.str();
  for (const char* part :
       {"format csv", "4 requests, 10.0 s, 0.400 req/s", "warning: the trace has no prefix information",
        "tenants   north 2, south 2", "1 of 5 rows had no output tokens", "\"note\""}) {
    INFO(part << " in\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
  for (const std::string_view line : split(text, '\n')) CHECK(line.size() <= 100);
}

TEST_CASE("inspect gives one JSON document with the input's hash", "[unit]") {
  const Folder folder;
  std::ostringstream out, log;
  trace_inspect({folder.input(), true}, out, log);
  const Json json = Json::parse(out.str(), "out");
  CHECK(json.find("schema_version")->as_int64() == 1);
  CHECK(json.find("inputs")->as_array()[0].find("sha256")->as_string() == sha256(kRows));
  const Json& result = *json.find("result");
  CHECK(result.find("requests")->as_int64() == 4);
  CHECK(result.find("zero_output_dropped")->as_int64() == 1);
  CHECK(result.find("input_tokens")->find("p50")->as_double() == 25.0);
  CHECK(result.find("prefix_reuse") == nullptr);
  CHECK(log.str().find("warning: ") == 0);
}

TEST_CASE("convert keeps every row and says in the header where it is from", "[unit]") {
  const Folder folder;
  std::ostringstream log;
  trace_convert({folder.input(), folder.at("out.jsonl.gz"), "our gateway", "internal"}, log);
  const auto rows = rows_of(folder.at("out.jsonl.gz"));
  REQUIRE(rows.size() == 4);
  CHECK(rows[1].arrival_ns == 1'000'000'000);
  CHECK(rows[3].tenant == "north");
  TraceReader reader(folder.at("out.jsonl.gz"));
  CHECK(reader.info().format == TraceFormat::canonical);
  TraceRecord record;
  reader.next(record);
  CHECK(reader.info().header.find("source")->as_string() == "our gateway");
  CHECK(reader.info().header.find("license")->as_string() == "internal");
  CHECK(reader.info().header.find("sha256_of_input")->as_string() == sha256(kRows));
}

TEST_CASE("head takes the first requests or a window, moved to time 0", "[unit]") {
  const Folder folder;
  std::ostringstream log;
  trace_head({folder.input(), folder.at("two.jsonl"), 2, Duration{}, kForever}, log);
  CHECK(rows_of(folder.at("two.jsonl")).size() == 2);
  trace_head(
      {folder.input(), folder.at("window.jsonl"), 0, std::chrono::seconds(1), std::chrono::seconds(10)}, log);
  const auto rows = rows_of(folder.at("window.jsonl"));
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].arrival_ns == 3'000'000'000);
}

TEST_CASE("head leaves out turns whose session it cut off", "[unit]") {
  const Folder folder;
  const std::string row = "\"input_tokens\":5,\"output_tokens\":5}\n";
  write_file(folder.at("sessions.jsonl"), "{\"id\":\"a\",\"arrival_s\":1," + row +
                                              "{\"id\":\"b\",\"arrival_s\":9," + row +
                                              "{\"id\":\"b2\",\"after\":{\"id\":\"b\",\"delay_s\":1}," + row +
                                              "{\"id\":\"a2\",\"after\":{\"id\":\"a\",\"delay_s\":1}," + row);
  std::ostringstream log;
  trace_head({folder.input("sessions.jsonl"), folder.at("cut.jsonl"), 0, std::chrono::seconds(2), kForever},
             log);
  const auto rows = rows_of(folder.at("cut.jsonl"));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].id == "b");
  CHECK(rows[1].after_id == "b");
}

TEST_CASE("scale reaches a rate or multiplies it, every gap alike", "[unit]") {
  const Folder folder;
  std::ostringstream log;
  trace_scale({folder.input(), folder.at("rate.jsonl"), 0.8, 0.0}, log);
  trace_scale({folder.input(), folder.at("factor.jsonl"), 0.0, 2.0}, log);
  CHECK(rows_of(folder.at("rate.jsonl"))[3].arrival_ns == 5'000'000'000);
  CHECK(rows_of(folder.at("factor.jsonl"))[2].arrival_ns == 2'000'000'000);
  CHECK_THROWS_AS(trace_scale({folder.input(), folder.at("x.jsonl"), 1.0, 1.0}, log), UsageError);
  CHECK_FALSE(std::filesystem::exists(folder.at("x.jsonl")));
}

TEST_CASE("a trace is never edited in place, and a bad one leaves nothing behind", "[unit]") {
  const Folder folder;
  std::ostringstream log;
  CHECK_THROWS_AS(trace_convert({folder.input(), folder.at("rows.csv"), "", ""}, log), UsageError);
  CHECK(read_file(folder.at("rows.csv")) == kRows);
  write_file(folder.at("bad.csv"), kRows + "5,1,1,x,\n");
  CHECK_THROWS_AS(trace_convert({folder.input("bad.csv"), folder.at("never.jsonl"), "", ""}, log),
                  InputError);
  CHECK_FALSE(std::filesystem::exists(folder.at("never.jsonl")));
}

TEST_CASE("what has no end or no arrivals of its own cannot be synthesised", "[unit]") {
  const Folder folder;
  std::ostringstream log;
  WorkloadSpec endless = azure_conv_moments(1, 0);
  CHECK_THROWS_AS(trace_synth({endless, folder.at("x.jsonl"), "", ""}, log), UsageError);
  endless.requests = 5;
  endless.arrivals.kind = ArrivalKind::closed_loop;
  CHECK_THROWS_AS(trace_synth({endless, folder.at("x.jsonl"), "", ""}, log), InputError);
}

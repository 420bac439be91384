#include <string>
#include <vector>

#include "sim/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

struct Fault {
  std::string text;
  std::string begin;
};

void check_all(const std::vector<Fault>& faults, const TraceReadOptions& options = {}) {
  for (const Fault& fault : faults) {
    INFO(fault.text);
    const std::string found = fault_of(fault.text, options);
    CHECK(found.substr(0, fault.begin.size()) == fault.begin);
  }
}

const std::string kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
const std::string kPlain = "arrival_s,input_tokens,output_tokens\n";

}  // namespace

TEST_CASE("faults in CSV rows name file and line, what was expected and what was found", "[unit]") {
  check_all({
      {kAzureHeader + "2023-11-16 18:17:03,4808\n", "t:2: expected 3 columns as in the header, found 2"},
      {kAzureHeader + "2023-11-16 18:17:03,4808,1\n17:03,1,1\n", "t:3: expected a time YYYY-MM-DD HH:MM:SS"},
      {kAzureHeader + "2023-11-16 18:17:03,0,1\n", "t:2: expected at least one input token, found 0"},
      {kAzureHeader + "2023-11-16 18:17:03,-4,1\n",
       "t:2: expected input tokens as a whole number in [0, 100000000], found \"-4\""},
      {kAzureHeader + "2023-11-16 18:17:03,4.5,1\n", "t:2: expected input tokens as a whole number"},
      {kAzureHeader + "2023-11-16 18:17:03,99999999999999999999,1\n",
       "t:2: expected input tokens as a whole number"},
      {kAzureHeader + "2023-11-16 18:17:03,5,nan\n", "t:2: expected output tokens as a whole number"},
      {kPlain + "-1,5,5\n",
       "t:2: expected a number that is not negative, in the unit of the column, found \"-1\""},
      {kPlain + "nan,5,5\n", "t:2: expected a number that is not negative"},
      {kPlain + "1e300,5,5\n", "t:2: expected a number that is not negative"},
      {kPlain + "5ms,5,5\n", "t:2: expected a number that is not negative"},
      {kPlain + "1,\"5,5\n", "t:2: expected a closing quote, found the end of the line"},
      {kPlain + "1,\"5\"5,5\n", "t:2: expected a comma behind the closing quote, found \"5\""},
      {kPlain + std::string("1,5,5\n2,5\0,5\n", 13), "t:3: expected text, found a NUL byte"},
  });
}

TEST_CASE("a missing or doubled column is named, and a time without a unit is none", "[unit]") {
  check_all({
      {"timestamp,input_tokens,output_tokens\n1,1,1\n",
       "t:1: expected a column for arrivals with its unit in the name"},
      {"arrival_s,output_tokens\n1,1\n", "t:1: expected a column input_tokens"},
      {"arrival_s,input_tokens\n1,1\n", "t:1: expected a column output_tokens"},
      {"arrival_s,arrival_ms,input_tokens,output_tokens\n1,1,1,1\n",
       "t:1: expected one column for each meaning, found a second one, \"arrival_ms\""},
      {"TIMESTAMP,ContextTokens\n1,1\n", "t:1: expected a column for arrivals"},
  });
  TraceReadOptions options;
  options.columns = parse_columns("arrival_s=when");
  check_all({{kPlain + "1,1,1\n",
              "t:1: expected a column \"when\" for arrival_s, found the columns \"arrival_s\""}},
            options);
  options.columns = {{"arrival", "arrival_s"}};
  check_all({{kPlain + "1,1,1\n", "--columns: expected a name such as arrival_s"}}, options);
}

TEST_CASE("faults in JSONL rows name file, line and member", "[unit]") {
  const std::string good = R"({"arrival_s":1,"input_tokens":5,"output_tokens":5})"
                           "\n";
  check_all({
      {good + R"({"arrival_s":1,"input_tokens":5)", "t:2:"},
      {good + "[1]", "t:2: expected an object, found an array"},
      {good + R"({"arrival_ms":1,"input_tokens":5,"output_tokens":5})",
       "t:2: /arrival_ms: expected a known key, found the unknown key \"arrival_ms\" (did you mean "
       "\"arrival_s\"?)"},
      {good + R"({"arrival_s":"2 s","input_tokens":5,"output_tokens":5})",
       "t:2: /arrival_s: expected a number of seconds that is not negative"},
      {good + R"({"arrival_s":-1,"input_tokens":5,"output_tokens":5})",
       "t:2: /arrival_s: expected a number of seconds"},
      {good + R"({"arrival_s":1e300,"input_tokens":5,"output_tokens":5})",
       "t:2: /arrival_s: expected a number of seconds"},
      {good + R"({"arrival_s":NaN,"input_tokens":5,"output_tokens":5})", "t:2:14:"},
      {good + R"({"arrival_s":1,"input_tokens":0,"output_tokens":5})",
       "t:2: expected at least one input token, found 0"},
      {good + R"({"arrival_s":1,"input_tokens":1.5,"output_tokens":5})",
       "t:2: /input_tokens: expected a whole number"},
      {good + R"({"arrival_s":1,"input_tokens":1e12,"output_tokens":5})",
       "t:2: /input_tokens: expected a whole number"},
      {good + R"({"arrival_s":1,"output_tokens":5})", "t:2: expected a member \"input_tokens\", found none"},
      {good + R"({"input_tokens":5,"output_tokens":5})",
       "t:2: expected either arrival_s or after, found neither"},
      {good + R"({"arrival_s":0.5,"input_tokens":5,"output_tokens":5})", "t:2: expected arrivals in order"},
      {good + R"({"arrival_s":1,"input_tokens":5,"output_tokens":5,"prefix_hashes":[1]})",
       "t:2: expected block_tokens beside"},
      {good + R"({"arrival_s":1,"input_tokens":5,"output_tokens":5,"prefix_hashes":[-1],"block_tokens":16})",
       "t:2: /prefix_hashes: expected whole numbers that are not negative, found -1"},
      {good + R"({"arrival_s":1,"input_tokens":5,"output_tokens":5,"max_new_tokens":0})",
       "t:2: /max_new_tokens: expected at least 1"},
      {good + R"({"foretoken_trace":1})", "t:2: /foretoken_trace: expected one header"},
      {R"({"foretoken_trace":2})", "t:1: /foretoken_trace: expected a whole number in [1, 1], found 2"},
      {R"({"timestamp": 1.5, "input_length": 5, "output_length": 5, "hash_ids": [1]})",
       "t:1: /timestamp: expected a whole number"},
      {R"({"timestamp": 1, "input_length": 5, "hash_ids": [1]})",
       "t:1: expected a member \"output_length\", found none"},
  });
}

TEST_CASE("what is no trace is refused with what was looked for", "[unit]") {
  check_all({
      {"", "t: expected a trace, found no rows"},
      {"\n\n", "t: expected a trace, found no rows"},
      {"hello\n", "t:1: expected the first line of a known trace"},
      {"2023-11-16 18:17:03.9,4808,10\n", "t:1: expected the first line of a known trace"},
      {R"({"request_id": 0, "type": "text", "input_length": 271})",
       "t:1: expected a row of a known JSONL trace"},
      {"{\"a\"", "t:1:"},
  });
  CHECK(error_of([] { trace_format("azur"); }).find("--format: expected one of detect, azure, burstgpt") ==
        0);
  CHECK(error_of([] { parse_columns("a"); }).find("--columns: expected ours=theirs") == 0);
}

TEST_CASE("a directory, a missing file and broken gzip are refused by name", "[unit]") {
  CHECK(error_of([] { TraceReader reader("/"); }).find("/: cannot read: it is a directory") == 0);
  CHECK(error_of([] { TraceReader reader("/no/such.csv"); }).find("/no/such.csv: cannot read:") == 0);
  const ScratchFile file("broken.csv.gz", "");
  write_file(file.path(), kPlain + "1,1,1\n");
  std::string packed;
  {
    std::FILE* stream = std::fopen(file.path().c_str(), "rb");
    char buffer[4096];
    packed.assign(buffer, std::fread(buffer, 1, sizeof buffer, stream));
    std::fclose(stream);
  }
  const ScratchFile cut("cut.csv", packed.substr(0, packed.size() / 2));
  const std::string fault = error_of([&] {
    TraceReader reader(cut.path());
    TraceRecord record;
    while (reader.next(record)) {
    }
  });
  CHECK(fault.find("cannot read: the gzip data") != std::string::npos);
}

#include "tests/cli/bad_files.hpp"

namespace foretoken {
namespace {

const std::string kHead = "arrival_s,input_tokens,output_tokens\n";
const std::string kCanonical = "{\"foretoken_trace\":1}\n";
const std::string kMegabyte(std::size_t{1} << 20, '9');
const std::string kScenarioStart =
    "{\"model\": \"m25\", \"cost\": {\"affine\": {\"step_us\": 2000}}, \"engine\": {\"preset\": \"vllm-v1\","
    " \"num_gpu_blocks_override\": 100},\n";

}  // namespace

std::vector<BadFile> bad_csv_files() {
  const std::string count = "expected input tokens as a whole number in [0, 100000000]";
  const std::string time = "expected a number that is not negative, in the unit of the column";
  const std::string unit = "expected a column for arrivals with its unit in the name (arrival_s";
  return {
      {"word.csv", kHead + "1,x,5\n", ":2: ", {count, "found \"x\""}},
      {"short.csv", kHead + "1,10,5\n2,10\n", ":3: ", {"expected 3 columns as in the header, found 2"}},
      {"quote.csv", kHead + "1,10,\"5\n", ":2: ", {"expected a closing quote, found the end of the line"}},
      {"empty.csv", "", ": ", {"expected a trace, found no rows"}},
      {"header.csv", kHead, ": ", {"expected rows behind the header, found none"}},
      {"blank.csv", "\n\r\n \n", ": ", {"expected a trace, found no rows"}},
      {"huge.csv", kHead + "1,99999999999999999999,5\n", ":2: ", {count, "found \"9999999999"}},
      {"negative.csv", kHead + "1,-4,5\n", ":2: ", {count, "found \"-4\""}},
      {"past.csv", kHead + "-1,4,5\n", ":2: ", {time, "found \"-1\""}},
      {"nan.csv", kHead + "nan,4,5\n", ":2: ", {time, "found \"nan\""}},
      {"infinite.csv", kHead + "1e999,4,5\n", ":2: ", {time, "found \"1e999\""}},
      {"unsorted.csv", kHead + "5,4,5\n3,4,5\n", ":3: ", {"expected arrivals in order", "--sort sorts them"}},
      {"no-prompt.csv", kHead + "1,0,5\n", ":2: ", {"expected at least one input token, found 0"}},
      {"minutes.csv", "arrival_min,input_tokens,output_tokens\n1,4,5\n", ":1: ", {unit, "\"arrival_min\""}},
      {"no-unit.csv", "arrival,input_tokens,output_tokens\n1,4,5\n", ":1: ", {unit, "\"arrival\""}},
      {"missing.csv",
       "arrival_s,input_tokens\n1,4\n",
       ":1: ",
       {"expected a column output_tokens", "found the"}},
      {"twice.csv",
       "arrival_s,input_tokens,output_tokens,prompt_tokens\n1,4,5,5\n",
       ":1: ",
       {"expected one column for each meaning, found a second one, \"prompt_tokens\""}},
      {"nul.csv", kHead + std::string("1,4\0,5\n", 7), ":2: ", {"expected text, found a NUL byte"}},
      {"utf8.csv", kHead + "1,4\xff\xfe,5\n", ":2: ", {count}},
      {"long-line.csv", kHead + "1," + kMegabyte + ",5\n", ":2: ", {count, "...\""}},
  };
}

std::vector<BadFile> bad_canonical_files() {
  const std::string row = kCanonical + "{\"arrival_s\": ";
  const std::string rest = ", \"output_tokens\": 5}\n";
  return {
      {"header.jsonl", kCanonical, ": ", {"expected rows behind the header, found none"}},
      {"no-colon.jsonl", row + "1, \"input_tokens\" 4" + rest, ":2:33: ", {"unexpected number literal"}},
      {"half.jsonl", row + "1, \"input_to", ":2:", {"missing closing quote"}},
      {"type.jsonl",
       row + "\"one\", \"input_tokens\": 4" + rest,
       ":2: /arrival_s: ",
       {"expected a number of seconds that is not negative, found \"one\""}},
      {"key.jsonl",
       row + "1, \"input_token\": 4" + rest,
       ":2: /input_token: ",
       {"expected a known key", "did you mean \"input_tokens\"?"}},
      {"deep.jsonl",
       row + std::string(100'000, '['),
       ":2:214: ",
       {"expected nesting of at most 200, found more"}},
      {"utf8.jsonl",
       row + "1, \"tenant\": \"\xff\", \"input_tokens\": 4" + rest,
       ":2:",
       {"ill-formed UTF-8"}},
      {"nul.jsonl",
       row + "1, \"tenant\": \"a\\u0000\", \"input_tokens\": 4" + rest,
       ":2:",
       {"found a NUL character"}},
      {"twice.jsonl",
       row + "1, \"arrival_s\": 2, \"input_tokens\": 4" + rest,
       ":2:",
       {"expected distinct keys, found \"arrival_s\" twice"}},
      {"late.jsonl", row + "1e300, \"input_tokens\": 4" + rest, ":2: /arrival_s: ", {"found 1e+300"}},
      {"huge.jsonl",
       row + "1, \"input_tokens\": 4e18" + rest,
       ":2: /input_tokens: ",
       {"expected a whole number in [0, 100000000], found 4e+18"}},
      {"nan.jsonl", row + "NaN, \"input_tokens\": 4" + rest, ":2:15: ", {"invalid literal"}},
      {"no-prompt.jsonl",
       row + "1, \"input_tokens\": 0" + rest,
       ":2: ",
       {"expected at least one input token"}},
      {"missing.jsonl", row + "1" + rest, ":2: ", {"expected a member \"input_tokens\", found none"}},
      {"long-line.jsonl",
       row + "1, \"x\": \"" + kMegabyte + "\", \"input_tokens\": 4" + rest,
       ":2: /x: ",
       {"expected a known key, found the unknown key \"x\""}},
  };
}

std::vector<BadFile> bad_scenario_files() {
  const std::string work = "\"workload\": {\"trace\": {\"path\": \"fine.csv\"}}, ";
  return {
      {"no-colon.json", "{\n \"seed\": 1,\n \"name\" 5}", ":3:9: ", {"unexpected number literal"}},
      {"half.json", "{\n \"seed\": 1,\n \"na", ":3:5: ", {"missing closing quote"}},
      {"empty.json", "", ":1:1: ", {"unexpected end of input"}},
      {"overflow.json", "{\n \"seed\": 1e400}", ":2:14: ", {"number overflow"}},
      {"huge.json",
       "{\n \"replicates\": 99999999999999999999}",
       ":2: /replicates: ",
       {"expected an integer in [1, 1000], found 1e+20"}},
      {"negative.json",
       "{\n \"replicates\": -3}",
       ":2: /replicates: ",
       {"expected an integer in", "found -3"}},
      {"nan.json", "{\n \"replicates\": NaN}", ":2:16: ", {"invalid literal"}},
      {"unit.json",
       kScenarioStart + work + "\n\"slo\": [\"ttft.p99<500\"]}",
       ":3: /slo",
       {"a duration with its unit"}},
      {"twice.json",
       "{\"seed\": 1,\n \"seed\": 2}",
       ":2:7: ",
       {"expected distinct keys, found \"seed\" twice"}},
      {"nul.json", std::string("{\"seed\": 1,\n \"name\": \"a\0b\"}", 27), ":2:12: ", {"found a NUL byte"}},
      {"utf8.json", "{\"seed\": 1,\n \"name\": \"a\xff\"}", ":2:12: ", {"ill-formed UTF-8 byte"}},
      {"deep.json", "{\"workload\":\n" + std::string(100'000, '['), ":2:200: ", {"nesting of at most 200"}},
      {"long-line.json",
       "{\"name\": \"" + kMegabyte + "\",\n \"sede\": 1}",
       ":2: /sede: ",
       {"did you mean \"seed\"?"}},
      {"key.json", "{\"seed\": 1,\n \"sede\": 2}", ":2: /sede: ", {"unknown key", "did you mean \"seed\"?"}},
      {"type.json",
       "{\"seed\": 1,\n \"replicates\": \"two\"}",
       ":2: /replicates: ",
       {"expected an integer in [1, 1000], found a string \"two\""}},
      {"list.json", "[1]", ": ", {"expected an object, found an array"}},
      {"model.json", "{\"model\":\n\"lama-3.1-8b\"}", ":2: /model: ", {"did you mean \"llama-3.1-8b\"?"}},
      {"no-prompt.json",
       kScenarioStart + "\"workload\": {\"arrivals\": {\"kind\": \"poisson\", \"rate_per_s\": 1},\n"
                        "\"prompt_tokens\": 0, \"output_tokens\": 4, \"requests\": 3}}",
       ":3: /workload/prompt_tokens: ",
       {"expected an integer in [1, 100000000], found 0"}},
  };
}

}  // namespace foretoken

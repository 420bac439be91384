#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/option_value.hpp"
#include "kernels/cpu/isa.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"
#include "tests/cli/refusal.hpp"

namespace foretoken {

TEST_CASE("flags that do not apply are refused and say when they do", "[cli]") {
  const std::vector<std::string> read = {"--format csv", "--columns input_tokens=a", "--sort",
                                         "--spread-ties uniform", "--zero-output keep"};
  for (const std::string& flag : read) {
    const std::string name = flag.substr(0, flag.find(' '));
    refuses("simulate demo " + flag, kExitUsage, {name + ": expected --trace FILE beside it"});
    refuses("calibrate demo " + flag, kExitUsage, {name + ": does not apply", "it applies to simulate"});
  }
  refuses("live demo --replicates 2", kExitUsage, {"--replicates: does not apply", "it applies to simulate"});
  refuses("live demo --profile p.json", kExitUsage, {"--profile: does not apply", "simulate and validate"});
  for (const char* flag : {"--slo 'ttft.p99<1s'", "--rate 4", "--requests 4", "--horizon 5s",
                           "--replicates 2", "--trace x.csv", "--profile p.json"})
    refuses("calibrate demo " + std::string(flag), kExitUsage,
            {": does not apply", "it applies to simulate"});
  for (const char* flag : {"--slo 'ttft.p99<1s'", "--rate 4", "--replicates 2"})
    refuses("validate demo " + std::string(flag), kExitUsage, {": does not apply", "it applies to simulate"});
  for (const char* flag : {"--slo 'ttft.p99<1s'", "--replicates 1", "-j 2", "--step-log x",
                           "--requests-file x.csv", "--step-by-step"})
    refuses("simulate chat-8b-h100 --capacity " + std::string(flag), kExitUsage,
            {"--capacity: expected no --"});
  refuses("simulate demo --replicates 3", kExitUsage,
          {"--replicates: expected 1 on a trace", "found 3; it applies"});
  refuses("trace synth --rate 5 --requests 5 --cv 2", kExitUsage,
          {"--cv: expected --arrivals gamma beside it"});
  refuses("trace synth --workload w.json --prompt 5", kExitUsage,
          {"--prompt: expected no --workload beside it"});
  refuses("trace inspect x.csv --format azure --columns input_tokens=a", kExitUsage,
          {"--columns: expected --format csv", "found --format azure"});
  refuses("simulate demo --json -o csv", kExitUsage, {"--json: expected no -o beside it", "found -o csv"});
  refuses("--json", kExitUsage, {"--json: expected --version before it"});
  const std::string help = run_program("calibrate --help").out;
  CHECK(help.find("--slo") == std::string::npos);
  CHECK(help.find("--preset") != std::string::npos);
}

TEST_CASE("words that are wrong are refused where they do not apply, too", "[cli]") {
  refuses("simulate demo --spread-ties some", kExitUsage,
          {"--spread-ties: expected none or uniform, found \"some\""});
  refuses("simulate demo --zero-output some", kExitUsage,
          {"--zero-output: expected by-format", "found \"some\""});
  refuses("simulate demo --format some", kExitUsage, {"--format", "some"});
}

TEST_CASE("an instruction set that is not there is refused with those that are", "[cli]") {
  for (const char* command : {"live demo --dry-run", "calibrate demo --dry-run", "validate demo --dry-run",
                              "demo --dry-run", "bench machine", "bench kernels", "bench step"})
    refuses(command, kExitUsage,
            {"FORETOKEN_ISA: expected one of portable",
             std::string(cpu::isa_name(cpu::available_isas().back())), "found \"zzz\""},
            "", "FORETOKEN_ISA=zzz");
  CHECK(run_program("live demo --dry-run", "FORETOKEN_ISA=portable").code == kExitOk);
  CHECK(run_program("live demo --dry-run", "FORETOKEN_ISA=").code == kExitOk);
}

TEST_CASE("what was written is what was found", "[cli]") {
  const auto finds = [](const std::string& command, const std::string& flag, const std::string& written) {
    refuses(command + " " + flag + " " + written, kExitUsage,
            {flag + ": expected ", "found \"" + written + "\""});
  };
  for (const char* text : {"-1", "18446744073709551615", "9007199254740993", "1.5", "0x10", "seven"})
    finds("simulate demo", "--seed", text);
  for (const char* text : {"0", "-1", "1001"}) finds("simulate demo", "--replicates", text);
  for (const char* text : {"0s", "-5s", "0.1ns", "9999h"}) finds("simulate demo", "--horizon", text);
  for (const char* text : {"-5", "0", "1e10", "nan", "5/s"}) {
    finds("trace synth --requests 3", "--rate", text);
    finds("simulate demo", "--rate", text);
  }
  for (const char* text : {"0", "-3", "99999999999999999999"}) {
    finds("simulate demo", "--requests", text);
    finds("bench sim", "--requests", text);
  }
  finds("simulate demo", "--jobs", "0");
  finds("live demo", "--threads", "-1");
  finds("live demo", "--threads", "1025");
  finds("calibrate demo", "--seconds", "0");
  finds("validate demo", "--repeats", "0");
  finds("bench step", "--seconds", "-1");
  finds("trace scale x.csv", "--factor", "-2");
  refuses("trace synth --requests 3", kExitUsage, {"--rate: expected requests per second, found none"});
}

TEST_CASE("a number is read as people write it", "[cli]") {
  std::int64_t whole = 7;
  double real = 7;
  const OptionSpec option{"-x,--ex", &whole, "N", "", false, {0, 100}};
  read_number(option, "010", whole);
  CHECK(whole == 10);
  read_number(option, "+12", whole);
  CHECK(whole == 12);
  read_number(option, "1e1", real);
  CHECK(real == 10);
  CHECK_THROWS_WITH(read_number(option, "101", whole),
                    "--ex: expected a whole number in [0, 100], found \"101\"");
  CHECK_THROWS_WITH(read_number(option, "+-1", real), "--ex: expected a number in [0, 100], found \"+-1\"");
  CHECK(whole == 12);
}

TEST_CASE("an error calls a setting by the name that was written", "[cli]") {
  refuses("simulate demo --set engine.max_num_batched_tokens=10", kExitInput,
          {"expected max_num_batched_tokens of at least max_num_seqs = 32, found 10"});
  refuses("simulate demo --preset sarathi --set engine.chunk_size=10", kExitInput,
          {"expected chunk_size of at least max_num_seqs = 128, found 10"});
  refuses("simulate demo --set engine.sched.batch_tokens_max=10", kExitInput,
          {"expected sched.batch_tokens_max of at least max_num_seqs = 32, found 10"});
  refuses(
      "simulate demo --set engine.enable_prefix_caching=true --set engine.sched.preempt=swap "
      "--set memory.host_blocks=100",
      kExitInput, {"expected sched.preempt \"recompute\" where enable_prefix_caching is true"});
}

TEST_CASE("a capacity that no rate has is code 4 and says why", "[cli]") {
  for (const char* scenario : {"demo", "chat-8b-h100"})
    refuses("simulate " + std::string(scenario) + " --set engine.max_model_len=1 --capacity", kExitInfeasible,
            {"no rate is served",
             "requests are refused at any rate, since they are longer than max_model_len = 1"});
}

TEST_CASE("a dry run reads the trace", "[cli]") {
  write_file(scratch_folder() + "/late.csv", "arrival_s,input_tokens,output_tokens\n0,64,20\n1,x,5\n");
  for (const char* command : {"live", "simulate", "validate"})
    refuses(std::string(command) + " demo --dry-run --trace late.csv", kExitInput,
            {"late.csv:3: expected input tokens"});
}

TEST_CASE("a live run that does not fit is refused with its parts before anything is made", "[cli]") {
  for (const char* command : {"live demo", "live demo --dry-run", "validate demo"})
    refuses(
        std::string(command) + " --set engine.num_gpu_blocks_override=9000000000000", kExitDevice,
        {"CPU backend: ", " of memory needed (weights ", " MiB, KV pool ", ", activations ", " available"});
  refuses("live demo --preset vllm-v0 --set engine.preemption_mode=swap --set engine.swap_space=900000",
          kExitDevice, {", swap pool "});
}

TEST_CASE("inspect counts ids that stand twice and requests that wait for nobody", "[cli]") {
  const std::string rest = "\"input_tokens\":5,\"output_tokens\":5}\n";
  write_file(scratch_folder() + "/ids.jsonl",
             "{\"id\":\"a\",\"arrival_s\":1," + rest + "{\"id\":\"a\",\"arrival_s\":2," + rest +
                 "{\"id\":\"b\",\"after\":{\"id\":\"c\",\"delay_s\":1}," + rest +
                 "{\"id\":\"c\",\"after\":{\"id\":\"c\",\"delay_s\":1}," + rest);
  const std::string table = run_program("trace inspect ids.jsonl").out;
  CHECK(table.find("warning: rows have an id that an earlier row has") != std::string::npos);
  CHECK(table.find("others; rows: 1\n") != std::string::npos);
  CHECK(table.find("refuses them; rows: 2\n") != std::string::npos);
  const Json result =
      *Json::parse(run_program("trace inspect ids.jsonl --json").out, "inspect").find("result");
  CHECK(result.find("duplicate_ids")->as_int64() == 1);
  CHECK(result.find("unknown_after")->as_int64() == 2);
}

TEST_CASE("any percentile can be a threshold, and the help says so", "[cli]") {
  const std::string csv =
      run_program("simulate demo -q -O p.json --slo 'ttft.p12<1h' --slo 'ttft.p88.5<1h'").out;
  CHECK(csv.find("ttft.p12 <") != std::string::npos);
  const Json report = Json::parse_file(scratch_folder() + "/p.json");
  const Json::Array& slos = report.find("result")->find("slos")->as_array();
  const Json& ttft = *report.find("result")->find("latency")->find("ttft_ms");
  REQUIRE(slos.size() == 2);
  CHECK(slos[0].find("value")->as_double() < ttft.find("p50")->as_double());
  CHECK(slos[1].find("value")->as_double() > ttft.find("p50")->as_double());
  CHECK(slos[1].find("value")->as_double() < ttft.find("p90")->as_double());
  CHECK(run_program("help thresholds").out.find("any percentile between p0 and p100") != std::string::npos);
}

}  // namespace foretoken

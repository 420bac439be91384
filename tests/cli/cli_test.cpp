#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/option_value.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretoken {
namespace {

const std::string kQuick = "simulate chat-8b-h100 --requests 200 --replicates 1 ";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void write_scratch(const std::string& name, const std::string& text) {
  write_file(scratch_folder() + "/" + name, text);
}

/// What a fresh clone has and examples speak of.
void link_clone() {
  const std::string link = scratch_folder() + "/scenarios";
  if (!std::filesystem::exists(link))
    std::filesystem::create_directory_symlink(FORETOKEN_SOURCE_DIR "/scenarios", link);
}

/// Names of commands from the program down, as they are typed.
void collect_names(const CommandSpec& command, const std::string& before, std::vector<std::string>& all) {
  all.push_back(before);
  for (const CommandSpec& child : command.children)
    collect_names(child, before + (before.empty() ? "" : " ") + child.name, all);
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::size_t length = 0;
  for (const char c : text) {
    length = c == '\n' ? 0 : length + ((c & 0xc0) != 0x80 ? 1 : 0);
    longest = std::max(longest, length);
  }
  return longest;
}

void collect(const CommandSpec& command, std::vector<const CommandSpec*>& all) {
  all.push_back(&command);
  for (const CommandSpec& child : command.children) collect(child, all);
}

}  // namespace

TEST_CASE("every example of every help runs", "[cli]") {
  link_clone();
  const CommandSpec program = all_commands();
  std::vector<const CommandSpec*> commands;
  collect(program, commands);
  for (const CommandSpec* command : commands) {
    INFO(command->name);
    CHECK_FALSE(command->examples.empty());
    std::string made_by_long_ones;
    for (const Example& example : command->examples) {
      INFO(example.line);
      REQUIRE(example.line.starts_with("foretoken "));
      // What is long is only checked; what it would have made is not there for the others.
      const bool is_bench = example.line.starts_with("foretoken bench ");
      if (example.takes_long && is_bench) continue;
      const std::size_t to = example.line.find("--to ");
      if (to != std::string::npos) made_by_long_ones = example.line.substr(to + 5);
      if (to == std::string::npos && !made_by_long_ones.empty() && has(example.line, made_by_long_ones))
        continue;
      const ProgramResult result =
          run_program(example.line.substr(10) + (example.takes_long ? " --dry-run" : ""));
      INFO(result.error);
      CHECK((result.code == kExitOk || result.code == kExitFinding));
    }
  }
}

TEST_CASE("no line of any help is longer than 100 columns", "[cli]") {
  std::vector<std::string> names;
  collect_names(all_commands(), "", names);
  CHECK(names.size() > 20);
  for (const std::string& name : names) {
    const ProgramResult result = run_program(name + " --help");
    INFO(name << " --help\n" << result.out);
    CHECK(result.code == kExitOk);
    CHECK(longest_line(result.out) <= 100);
    CHECK(result.out.starts_with("Examples:\n  foretoken "));
  }
}

TEST_CASE("long lines of a help are continued below their text", "[unit]") {
  const std::string words =
      "aaaaaaaaa bbbbbbbbb ccccccccc ddddddddd eeeeeeeee fffffffff ggggggggg hhhhhhhhh iii";
  CHECK(wrapped_help("  --x         " + words + " jjjjjj\n\nend\n", 14) ==
        "  --x         " + words + "\n              jjjjjj\n\nend\n");
  CHECK(wrapped_help("  foretoken " + words + " jjjjjj\n", 14) ==
        "  foretoken " + words + " \\\n      jjjjjj\n");
  CHECK(wrapped_help(std::string(120, 'x') + "\n", 14) == std::string(120, 'x') + "\n");
}

TEST_CASE("what is JSON anyway takes the flag, and is one document", "[cli]") {
  for (const char* arguments :
       {"config show demo --json", "config schema --json", "presets --json", "presets --json show orca",
        "presets show orca --json", "config list --json"}) {
    const ProgramResult result = run_program(arguments);
    INFO(arguments << result.error);
    REQUIRE(result.code == kExitOk);
    CHECK_NOTHROW(Json::parse(result.out, "stdout"));
  }
  CHECK(Json::parse(run_program("presets --json").out, "stdout").find("presets")->as_array().size() == 5);
  CHECK(Json::parse(run_program("presets --json show orca").out, "stdout").find("name")->as_string() ==
        "orca");
}

TEST_CASE("presets are one JSON document each", "[cli]") {
  for (const char* preset : {"static", "orca", "vllm-v0", "vllm-v1", "sarathi"}) {
    const ProgramResult result = run_program("presets show " + std::string(preset) + " --json");
    INFO(preset << result.error);
    REQUIRE(result.code == kExitOk);
    CHECK(Json::parse(result.out, "stdout").find("parameters") != nullptr);
  }
}

TEST_CASE("a tight pool at depth 1 is reported like any other run", "[cli]") {
  // Plans that only evict and leave out once confused the collector.
  for (const char* more : {"", "--step-by-step"}) {
    const ProgramResult result =
        run_program("simulate demo --set engine.num_gpu_blocks_override=60 --rate 20 " + std::string(more));
    INFO(result.error);
    CHECK(result.code == kExitOk);
  }
}

TEST_CASE("what says nothing is refused rather than answered", "[cli]") {
  // The same run thrice has no intervals, a search for what is served knows no thresholds, and nobody asks
  // for no requests.
  CHECK(run_program("simulate demo --set replicates=3").code == kExitInput);
  CHECK(run_program("simulate demo --capacity --slo 'ttft.p99<1s'").code == kExitUsage);
  CHECK(run_program("simulate demo --rate 0").code == kExitUsage);
  CHECK(run_program("simulate demo --requests 0").code == kExitUsage);
  CHECK(run_program("simulate demo --set engine.enable_prefix_caching=true --set engine.sched.preempt=swap "
                    "--set memory.host_blocks=100")
            .code == kExitInput);
  // A threshold on a run without requests is not met.
  const ProgramResult empty = run_program("simulate demo --horizon 1ns --slo 'ttft.p99<1s'");
  CHECK(empty.code == kExitFinding);
  CHECK(has(empty.out, "FAIL"));
}

TEST_CASE("help begins with examples and goes to stdout", "[cli]") {
  for (const char* arguments : {"--help", "simulate --help", "trace synth --help", "presets show --help"}) {
    const ProgramResult result = run_program(arguments);
    INFO(arguments);
    CHECK(result.code == kExitOk);
    CHECK(result.out.starts_with("Examples:\n  foretoken "));
    CHECK(result.error.empty());
  }
}

TEST_CASE("the version is one line, and a document with --json", "[cli]") {
  CHECK(run_program("--version").out.starts_with("foretoken "));
  const Json json = Json::parse(run_program("--version --json").out, "version");
  CHECK(json.find("version") != nullptr);
  CHECK(json.find("git_hash") != nullptr);
}

TEST_CASE("a wrong command line is code 2", "[cli]") {
  for (const char* arguments :
       {"", "simulat", "simulate", "simulate chat-8b-h100 --nothing", "presets show nothing",
        "simulate chat-8b-h100 --slo ttft.p99", "simulate chat-8b-h100 -o xml",
        "simulate chat-8b-h100 --set engine", "simulate chat-8b-h100 --color blue",
        "simulate chat-8b-h100 --horizon 5", "trace", "help nothing", "trace synth"}) {
    INFO(arguments);
    const ProgramResult result = run_program(arguments);
    CHECK(result.code == kExitUsage);
    CHECK((result.out.empty() || *arguments == '\0'));
  }
}

TEST_CASE("a wrong file is code 3 and the message says where", "[cli]") {
  const auto fails_with = [](const std::string& arguments, const std::string& part) {
    const ProgramResult result = run_program(arguments);
    INFO(arguments << ": " << result.error);
    CHECK(result.code == kExitInput);
    CHECK(result.out.empty());
    CHECK(has(result.error, part));
  };
  fails_with("simulate missing.json", "missing.json: cannot read");
  fails_with("simulate chat-8b-h10", "did you mean \"chat-8b-h100\"?");
  std::filesystem::create_directories(scratch_folder() + "/folder.json");
  fails_with("simulate folder.json", "it is a directory");
  write_scratch("broken.json", "{\n  \"seed\": 1,\n  \"name\" 5\n}");
  fails_with("simulate broken.json", "broken.json:3:");
  write_scratch("unknown.json", "{\n  \"sede\": 1\n}");
  fails_with("simulate unknown.json", "unknown.json:2: /sede");
  fails_with("simulate unknown.json", "did you mean \"seed\"?");
  fails_with("simulate chat-8b-h100 --set engine.max_num_seq=4", "did you mean \"max_num_seqs\"?");
  fails_with("simulate chat-8b-h100 --trace missing.csv", "missing.csv: cannot read");
  write_scratch("trace-bad.csv",
                "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,x,44\n");
  fails_with("simulate chat-8b-h100 --trace trace-bad.csv", "trace-bad.csv:2");
}

TEST_CASE("a file without permission is code 3", "[cli]") {
  if (::system("test $(id -u) -ne 0") != 0) return;  // root may read everything
  write_scratch("secret.json", "{}");
  std::filesystem::permissions(scratch_folder() + "/secret.json", std::filesystem::perms::none);
  CHECK(run_program("simulate secret.json").code == kExitInput);
}

TEST_CASE("a system that cannot exist is code 4", "[cli]") {
  CHECK(run_program("simulate chat-8b-h100 --set engine.gpu_memory_utilization=0.1").code == kExitInfeasible);
}

TEST_CASE("a full disk is code 6 and leaves nothing half-written", "[cli]") {
  const ProgramResult result = run_program(kQuick, "", "> /dev/full");
  CHECK(result.code == kExitDevice);
  CHECK(has(result.error, "standard output: cannot write"));
  CHECK(run_program(kQuick + "-O no-such-folder/report.json").code == kExitDevice);
}

TEST_CASE("a failed threshold is code 1", "[cli]") {
  CHECK(run_program(kQuick + "--slo 'ttft.p50<1us'").code == kExitFinding);
  CHECK(run_program(kQuick + "--set slo=[] --slo 'e2e.mean<1h'").code == kExitOk);
}

TEST_CASE("a reader that leaves early is no error", "[cli]") {
  const ProgramResult result = run_program("config schema", "", "| head -1");
  CHECK(result.code == kExitOk);
  CHECK(result.out == "{\n");
  CHECK(result.error.empty());
}

TEST_CASE("colours come only where they are wanted", "[cli]") {
  CHECK_FALSE(has(run_program(kQuick).out, "\033["));
  CHECK(has(run_program(kQuick + "--color always").out, "\033["));
  CHECK(has(run_program(kQuick, "CLICOLOR_FORCE=1").out, "\033["));
  CHECK_FALSE(has(run_program(kQuick, "NO_COLOR=1 CLICOLOR_FORCE=1").out, "\033["));
}

TEST_CASE("stdout is one JSON document, equal from run to run and for any number of threads", "[cli]") {
  const std::string arguments = "simulate chat-8b-h100 --requests 300 --replicates 3 --json ";
  const std::string first = run_program(arguments + "-j 1").out;
  CHECK((first == run_program(arguments + "-j 4 -q").out));
  const Json json = Json::parse(first, "report");
  for (const char* key : {"schema_version", "tool_version", "config", "seed", "inputs", "result"}) {
    INFO(key);
    CHECK(json.find(key) != nullptr);
  }
}

TEST_CASE("the plain way, step by step, gives every metric the same", "[cli]") {
  const std::string arguments = "simulate chat-8b-h100 --requests 300 --replicates 2 -q -o csv ";
  const std::string first = run_program(arguments).out;
  CHECK(has(first, "ttft"));
  CHECK((first == run_program(arguments + "--step-by-step").out));
}

TEST_CASE("flags win over the environment, the environment over the file", "[cli]") {
  const auto seed_of = [](const std::string& arguments, const std::string& before) {
    return Json::parse(run_program("config show chat-8b-h100 " + arguments, before).out, "config")
        .find("seed")
        ->as_int64();
  };
  CHECK(seed_of("", "") == 1);
  CHECK(seed_of("", "FORETOKEN_SEED=5") == 5);
  CHECK(seed_of("--set seed=6", "FORETOKEN_SEED=5") == 6);
  CHECK(seed_of("--seed 7", "FORETOKEN_SEED=5") == 7);
}

TEST_CASE("a scenario comes from standard input, copies go to files in the form of their names", "[cli]") {
  const std::string shown = run_program("config show chat-8b-h100").out;
  write_scratch("shown.json", shown);
  const ProgramResult result = run_program(
      "simulate - --requests 100 --replicates 1 -O copy.md -O copy.json --requests-file each.csv < "
      "shown.json");
  INFO(result.error);
  CHECK((result.code == kExitOk || result.code == kExitFinding));
  CHECK(read_file(scratch_folder() + "/copy.md").find('|') != std::string::npos);
  CHECK_NOTHROW(Json::parse_file(scratch_folder() + "/copy.json"));
  CHECK(read_file(scratch_folder() + "/each.csv").find('\n') != std::string::npos);
}

TEST_CASE("tables have at most 100 columns", "[cli]") {
  for (const char* arguments :
       {"presets", "presets show vllm-v1", "config list", "simulate chat-8b-h100 --requests 200",
        "help scenarios", "simulate --help"}) {
    INFO(arguments);
    CHECK(longest_line(run_program(arguments).out) <= 100);
  }
}

}  // namespace foretoken

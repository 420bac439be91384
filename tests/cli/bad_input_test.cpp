#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "models/profile.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/cli/bad_files.hpp"
#include "tests/cli/program.hpp"
#include "tests/cli/refusal.hpp"

namespace foretoken {
namespace {

#if defined(__SANITIZE_ADDRESS__)
// A process takes a third of a second to start here, and the readers are fuzzed besides.
constexpr std::size_t kCommandsMax = 1;
#else
constexpr std::size_t kCommandsMax = 9;
#endif

const std::string kCsvHead = "arrival_s,input_tokens,output_tokens\n";

std::string whole_trace() {
  std::string text = kCsvHead;
  for (int i = 0; i < 500; ++i) text += std::to_string(i) + "," + std::to_string(i * 7919 % 997 + 1) + ",5\n";
  return text;
}

void put(const std::string& name, const std::string& content) {
  write_file(scratch_folder() + "/" + name, content);
}

/// The bytes of a gzip file. Text already packed is not packed again by the name of its copy.
std::string packed(const std::string& text) {
  put("pack.gz", text);
  const std::string path = scratch_folder() + "/pack.gz";
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  REQUIRE(std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  std::filesystem::remove(path);
  return bytes;
}

/// Writes bytes as they are, whatever the name ends in.
void put_raw(const std::string& name, const std::string& bytes) {
  std::FILE* const file = std::fopen((scratch_folder() + "/" + name).c_str(), "wb");
  REQUIRE(file != nullptr);
  REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
}

void check_file(const BadFile& file, const std::vector<std::string>& commands) {
  put_raw(file.name, file.content);
  std::vector<std::string> parts = file.says;
  parts.push_back(file.name + file.place);
  for (std::size_t i = 0; i < std::min(commands.size(), kCommandsMax); ++i)
    refuses(commands[i] + file.name + " -q", kExitInput, parts);
  std::filesystem::remove(scratch_folder() + "/" + file.name);
}

}  // namespace

TEST_CASE("a bad trace is refused with its place by every command that reads traces", "[cli]") {
  const std::vector<std::string> commands = {
      "trace inspect ", "trace convert -O out.jsonl.gz ", "trace head -n 9 -O out.jsonl ",
      "trace scale --factor 2 -O out.jsonl ", "simulate demo -O out.json --requests-file out.csv --trace "};
  // Where the fault is in the file decides nothing, so that every second command is enough for each file.
  std::size_t turn = 0;
  std::vector<BadFile> files = bad_csv_files();
  for (const BadFile& file : bad_canonical_files()) files.push_back(file);
  for (const BadFile& file : files) {
    const std::size_t i = turn++ % commands.size();
    check_file(file, {commands[i], commands[(i + 2) % commands.size()]});
  }
  check_file(files.front(), commands);
}

TEST_CASE("a bad scenario is refused with its place by every command that runs one", "[cli]") {
  put("fine.csv", whole_trace());
  const std::vector<std::string> commands = {"simulate -O out.md ", "config show ",
                                             "live --step-log out.jsonl ", "calibrate --to out.json ",
                                             "validate -O out.json "};
  std::size_t turn = 0;
  for (const BadFile& file : bad_scenario_files()) check_file(file, {"simulate ", commands[1 + turn++ % 4]});
  check_file(bad_scenario_files().front(), commands);
}

TEST_CASE("gzip that was cut short or damaged is refused", "[cli]") {
  const std::string whole = packed(whole_trace());
  put_raw("cut.csv.gz", whole.substr(0, whole.size() / 2));
  std::string changed = whole;
  for (std::size_t i = 30; i < 60; ++i) changed[i] = static_cast<char>(~changed[i]);
  put_raw("damaged.csv.gz", changed);
  for (const char* command :
       {"trace inspect -q ", "trace convert -q -O out.jsonl ", "simulate demo -q --trace "}) {
    refuses(std::string(command) + "cut.csv.gz", kExitInput,
            {"cut.csv.gz: cannot read: the gzip data is truncated"});
    refuses(std::string(command) + "damaged.csv.gz", kExitInput,
            {"damaged.csv.gz: cannot read: the gzip data is damaged (i"});
  }
  put_raw("cut.json.gz", whole.substr(0, whole.size() / 2));
  refuses("simulate cut.json.gz", kExitInput, {"cut.json.gz: cannot read: the gzip data is truncated"});
  refuses("profile show cut.json.gz", kExitInput, {"the gzip data is truncated"});
}

TEST_CASE("a byte order mark and carriage returns are no fault", "[cli]") {
  std::string text = "\xef\xbb\xbf" + whole_trace();
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
    text.insert(at, "\r");
  put("windows.csv", text);
  put("unix.csv", whole_trace());
  CHECK(run_program("trace head windows.csv -O windows.jsonl -q").code == kExitOk);
  const ProgramResult same = run_program("trace convert windows.csv -q");
  CHECK(same.code == kExitOk);
  const std::string other = run_program("trace convert unix.csv -q").out;
  CHECK((same.out.substr(same.out.find('\n')) == other.substr(other.find('\n'))));
  put("windows.json", "\xef\xbb\xbf" + run_program("config show chat-8b-h100").out);
  CHECK(run_program("config show windows.json").code == kExitOk);
}

TEST_CASE("a folder, a missing file and a file without permission are refused", "[cli]") {
  std::filesystem::create_directories(scratch_folder() + "/folder.csv");
  const std::vector<std::string> commands = {"trace inspect ",
                                             "trace convert -O out.jsonl ",
                                             "trace head ",
                                             "trace scale --factor 2 ",
                                             "simulate ",
                                             "simulate demo --trace ",
                                             "simulate demo --profile ",
                                             "config show ",
                                             "live ",
                                             "calibrate ",
                                             "validate ",
                                             "validate demo --dry-run --profile ",
                                             "profile show ",
                                             "profile check ",
                                             "trace synth --workload "};
  for (const std::string& command : commands) {
    refuses(command + "folder.csv -q", kExitInput, {"folder.csv: cannot read: it is a directory"});
    refuses(command + "nowhere.csv -q", kExitInput, {"nowhere.csv: cannot read: No such file or directory"});
  }
  refuses("profile list nowhere", kExitInput, {"nowhere: expected a folder, found none"});
  if (::geteuid() == 0) {
    WARN("root may read everything: files without permission are not tried");
    return;
  }
  put("secret.csv", whole_trace());
  std::filesystem::permissions(scratch_folder() + "/secret.csv", std::filesystem::perms::none);
  for (const std::string& command : commands)
    refuses(command + "secret.csv -q", kExitInput, {"secret.csv: cannot read: Permission denied"});
}

TEST_CASE("a FIFO is read like a file, and its faults are told in the same way", "[cli]") {
  const std::string path = scratch_folder() + "/pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  put("fine.csv", whole_trace());
  put("word.csv", kCsvHead + "1,x,5\n");
  const ProgramResult fine = run_program("trace inspect pipe --json", "(timeout 20 cat fine.csv > pipe &) ;");
  CHECK(fine.code == kExitOk);
  CHECK(fine.out.find("\"requests\": 500") != std::string::npos);
  const ProgramResult bad =
      run_program("simulate demo -q --trace pipe", "(timeout 20 cat word.csv > pipe &) ;");
  CHECK(bad.code == kExitInput);
  CHECK(bad.error.find("pipe:2: expected input tokens") != std::string::npos);
  const ProgramResult read = run_program("trace inspect - < word.csv");
  CHECK(read.code == kExitInput);
  CHECK(read.error.find("standard input:2: expected input tokens") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a bad profile is refused with its place", "[cli]") {
  const std::string start = "{\n \"schema_version\": ";
  const std::vector<BadFile> files = {
      {"empty.profile.json", "", ":1:1: ", {"unexpected end of input"}},
      {"list.profile.json", "[]", ":1: ", {"expected an object, found an array"}},
      {"object.profile.json", "{}", ":1: ", {"expected a member \"schema_version\", found none"}},
      {"type.profile.json", start + "\"one\"}", ":2: /schema_version: ", {"expected an integer", "\"one\""}},
      {"later.profile.json", start + "99}", ":2: /schema_version: ", {"expected", "found 99"}},
      {"half.profile.json", start + "1,\n \"ha", ":3:", {"missing closing quote"}},
      {"nul.profile.json", start + std::string("\0", 1), ":2:", {"found a NUL byte"}},
      {"deep.profile.json", start + std::string(100'000, '['), ":2:", {"nesting of at most 200"}},
  };
  for (const BadFile& file : files)
    check_file(file, {"profile show ", "profile check ", "simulate demo --profile ",
                      "validate demo --dry-run --profile "});
}

TEST_CASE("numbers that mean nothing are refused on the command line", "[cli]") {
  put("fine.csv", whole_trace());
  const std::vector<std::string> usage = {"simulate demo --rate -3",
                                          "simulate demo --rate nan",
                                          "simulate demo --rate inf",
                                          "simulate demo --rate 5k",
                                          "simulate demo --requests -4",
                                          "simulate demo --requests 1e99",
                                          "simulate demo --horizon 5",
                                          "simulate demo --horizon -5s",
                                          "simulate demo --horizon 1e30h",
                                          "simulate demo --jobs -1",
                                          "simulate demo --slo 'ttft.p99<500'",
                                          "simulate demo --slo 'tfft.p99<1s'",
                                          "simulate demo --slo 'goodput>2'",
                                          "simulate demo --set a..b=1",
                                          "simulate demo --requests-file out.txt",
                                          "simulate demo -O out.xml",
                                          "simulate demo --trace fine.csv --format azur",
                                          "simulate demo --trace fine.csv --columns a",
                                          "live demo --threads -1",
                                          "live demo --backend cud",
                                          "calibrate demo --seconds -4",
                                          "calibrate demo --seconds nan",
                                          "validate demo --loads 0.3,x",
                                          "validate demo --repeats 0",
                                          "trace head fine.csv -n -4",
                                          "trace head fine.csv --from 5",
                                          "trace scale fine.csv",
                                          "trace scale fine.csv --factor -1",
                                          "trace scale fine.csv --factor nan",
                                          "trace scale fine.csv --factor inf",
                                          "trace scale fine.csv --rate inf",
                                          "trace convert fine.csv -O fine.csv",
                                          "trace synth --rate nan --requests 3",
                                          "trace synth --rate 5 --requests -3",
                                          "trace synth --rate 5 --requests 3 --prompt uniform:9..2"};
  for (const std::string& arguments : usage) refuses(arguments + " -q", kExitUsage, {});
  refuses("simulate demo -q --set replicates=0", kExitInput,
          {"/replicates: ", "found 0 (from --set replicates=0)"});
  refuses("trace scale fine.csv -q --factor 1e-300", kExitInput, {"fine.csv:3: expected arrivals within"});
}

TEST_CASE("a full disk or a missing folder for the output is code 6 and leaves nothing", "[cli]") {
  put("fine.csv", whole_trace());
  std::filesystem::create_directories(scratch_folder() + "/folder.csv");
  const std::string short_run = "simulate chat-8b-h100 --requests 20 --replicates 1 -q ";
  for (const char* arguments :
       {"config show demo", "config list", "config schema", "presets show vllm-v1", "help metrics",
        "profile list", "trace inspect fine.csv -q", "trace convert fine.csv -q",
        "trace head fine.csv -n 3 -q", "trace scale fine.csv --factor 2 -q",
        "trace synth --rate 5 --requests 30 -q", "live demo --dry-run", "calibrate demo --dry-run",
        "validate demo --dry-run", "--help", "--version"})
    refuses(arguments, kExitDevice, {"standard output: cannot write: No space left on device"},
            "> /dev/full");
  refuses(short_run, kExitDevice, {"standard output: cannot write"}, "> /dev/full");
  for (const char* output : {"-O no/out.json", "--requests-file no/out.csv", "--step-log no/out.jsonl"})
    refuses(short_run + output, kExitDevice, {"no/out."});
  refuses(short_run + "-O folder.csv", kExitDevice, {"folder.csv: cannot write: it is a directory"});
  refuses(short_run + "--step-log /dev/full", kExitDevice, {"/dev/full: ", "No space left on device"});
  for (const char* command : {"trace convert fine.csv -q -O ", "trace head fine.csv -q -O "}) {
    refuses(std::string(command) + "no/out.jsonl", kExitDevice, {"no/out.jsonl: cannot write: No such file"});
    refuses(std::string(command) + "/dev/full", kExitDevice, {"/dev/full: cannot write: No space left"});
    refuses(std::string(command) + "folder.csv", kExitDevice,
            {"folder.csv: cannot write: it is a directory"});
  }
  // These measure for long, so that they must look before.
  refuses("calibrate demo -q --to no/out.json", kExitDevice,
          {"no/out.json: cannot write: there is no folder no"});
  refuses("live demo -q -O no/out.json", kExitDevice, {"no/out.json: cannot write: there is no folder no"});
  refuses("validate demo -q -O no/out.json", kExitDevice,
          {"no/out.json: cannot write: there is no folder no"});
}

}  // namespace foretoken

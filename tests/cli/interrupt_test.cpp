#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "tests/catch.hpp"
#include "tests/cli/program.hpp"

namespace foretoken {
namespace {

/// The program running beside the test, in a folder of its own. What still runs at the end is killed.
class Running {
 public:
  /// `name`: of the folder, and of nothing else.
  Running(const std::string& name, const std::vector<std::string>& arguments)
      : folder_(scratch_folder() + "/" + name) {
    std::filesystem::create_directories(folder_ + "/made");
    std::vector<std::string> words = {FORETOKEN_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const int out = ::open((folder_ + "/out.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int error = ::open((folder_ + "/error.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const std::string made = folder_ + "/made";
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out, STDOUT_FILENO);
      ::dup2(error, STDERR_FILENO);
      // A test that was started in the background would hand down that Ctrl-C is ignored.
      ::signal(SIGINT, SIG_DFL);
      if (::chdir(made.c_str()) == 0) ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
    ::close(out);
    ::close(error);
  }
  ~Running() {
    if (ended_) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, &status_, 0);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void send(int number) const {
    if (!ended_) ::kill(child_, number);
  }

  /// Looks until `there` holds, the program ends, or minutes have passed; true in the first case.
  bool wait_for(const std::function<bool()>& there) {
    return poll([&] { return there() || has_ended(); }) && !ended_;
  }
  bool wait_for_text(const std::string& text) {
    return wait_for([&] { return error().find(text) != std::string::npos; });
  }
  /// Until a file that the program writes (or its draft) has grown to `bytes`.
  bool wait_for_bytes(const std::string& name, std::uintmax_t bytes) {
    return wait_for([&] {
      for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/made")) {
        std::error_code gone;
        const std::uintmax_t size = std::filesystem::file_size(entry.path(), gone);
        if (!gone && entry.path().filename().string().starts_with(name) && size >= bytes) return true;
      }
      return false;
    });
  }
  /// The exit code; 1000 and the signal's number where one killed it, -1 where it never ends.
  int finish() {
    if (!poll([&] { return has_ended(); })) return -1;
    return WIFSIGNALED(status_) ? 1000 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }
  /// Sends the signal again and again until the program has ended: two of one kind that nobody has seen yet
  /// are one.
  int finish_by(int number) {
    poll([&] {
      send(number);
      return has_ended();
    });
    return finish();
  }

  std::string out() const { return read_file(folder_ + "/out.txt"); }
  std::string error() const { return read_file(folder_ + "/error.txt"); }
  std::string made(const std::string& name) const { return read_file(folder_ + "/made/" + name); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/made"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  bool has_ended() {
    if (!ended_) ended_ = ::waitpid(child_, &status_, WNOHANG) == child_;
    return ended_;
  }

  static bool poll(const std::function<bool()>& done) {
    // A bound for a program that hangs; what a loaded machine needs is far below.
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!done()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  std::string folder_;
  pid_t child_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

using Names = std::vector<std::string>;

/// stdout as the one document it must be, marked as cut short.
Json interrupted_document(const Running& program) {
  const Json document = Json::parse(program.out(), "standard output");
  const Json* mark = document.find("interrupted");
  REQUIRE(mark != nullptr);
  CHECK(mark->as_bool());
  CHECK(document.find("config") != nullptr);
  return document;
}

void check_whole_lines(const std::string& text, bool are_json) {
  REQUIRE_FALSE(text.empty());
  CHECK(text.back() == '\n');
  if (!are_json) return;
  int line = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    CHECK_NOTHROW(Json::parse_line(text.substr(at, text.find('\n', at) - at), "log", ++line));
}

const Names kLongRun = {"simulate", "chat-8b-h100", "--requests", "100000000", "-v", "--json"};

Names with(Names arguments, const Names& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("a simulation that is told to stop keeps what it has", "[cli]") {
  for (const int number : {SIGINT, SIGTERM}) {
    INFO("signal " << number);
    Running program("stop-" + std::to_string(number),
                    with(kLongRun, {"--requests-file", "each.csv", "--step-log", "steps.jsonl", "-O",
                                    "copy.json", "-O", "copy.md"}));
    REQUIRE(program.wait_for_text("simulating"));
    // Half a run: requests have ended, and none of the files is complete.
    REQUIRE(program.wait_for_bytes("each.csv", 1));
    program.send(number);
    CHECK(program.finish() == kExitInterrupted);
    const Json document = interrupted_document(program);
    CHECK(document.find("result")->is_object());
    CHECK((program.files() == Names{"copy.json", "copy.md", "each.csv", "steps.jsonl"}));
    CHECK((program.made("copy.json") == program.out()));
    check_whole_lines(program.made("each.csv"), false);
    check_whole_lines(program.made("steps.jsonl"), true);
  }
}

TEST_CASE("a simulation that is stopped at once still prints a document", "[cli]") {
  Running program("at-once", kLongRun);
  REQUIRE(program.wait_for_text("simulating"));
  program.send(SIGINT);
  CHECK(program.finish() == kExitInterrupted);
  interrupted_document(program);
  CHECK(program.files().empty());
}

TEST_CASE("a search for the capacity that is stopped says so", "[cli]") {
  Running program("capacity",
                  {"simulate", "chat-8b-h100", "--requests", "400000", "--capacity", "-v", "--json"});
  REQUIRE(program.wait_for_text("% served"));
  program.send(SIGINT);
  CHECK(program.finish() == kExitInterrupted);
  CHECK_FALSE(interrupted_document(program).find("result")->find("points")->as_array().empty());
}

TEST_CASE("a live run that is stopped ends the step in flight and keeps what it has", "[live]") {
  for (const int number : {SIGINT, SIGTERM}) {
    for (const std::uintmax_t bytes : {1U, 8000U}) {
      INFO("signal " << number << " after " << bytes << " bytes of the log");
      Running program("live-" + std::to_string(number) + "-" + std::to_string(bytes),
                      {"live", "demo", "-v", "--json", "--step-log", "steps.jsonl", "-O", "copy.json"});
      REQUIRE(program.wait_for_bytes("steps.jsonl", bytes));
      program.send(number);
      CHECK(program.finish() == kExitInterrupted);
      interrupted_document(program);
      CHECK((program.files() == Names{"copy.json", "steps.jsonl"}));
      CHECK((program.made("copy.json") == program.out()));
      check_whole_lines(program.made("steps.jsonl"), true);
    }
  }
}

TEST_CASE("a live run that is stopped while its weights are made runs nothing", "[live]") {
  Running program("weights", {"live", "demo", "-v", "--json"});
  REQUIRE(program.wait_for_text("making weights"));
  program.send(SIGINT);
  CHECK(program.finish() == kExitInterrupted);
  interrupted_document(program);
}

TEST_CASE("weights of a large model end with the signal", "[live]") {
  const std::string model = scratch_folder() + "/large.json";
  write_file(
      model,
      R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24,
                 "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
                 "max_position_embeddings": 1024, "rope_theta": 10000.0, "rms_norm_eps": 1e-5,
                 "torch_dtype": "bfloat16", "tie_word_embeddings": false})");
  Running program("large", {"live", "demo", "-v", "--json", "--set", "model=" + model, "--set",
                            "engine.num_gpu_blocks_override=100", "--set", "engine.max_model_len=1024"});
  REQUIRE(program.wait_for_text("making weights"));
  const auto begin = std::chrono::steady_clock::now();
  program.send(SIGTERM);
  CHECK(program.finish() == kExitInterrupted);
  // All of them take some eight seconds on two cores.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
  interrupted_document(program);
}

TEST_CASE("one live run shows no spread, and the table says so", "[live]") {
  const std::string arguments = "validate demo --loads 0.3 --repeats 1 --requests 12 -O one.json -o table";
  const ProgramResult result = run_program(arguments);
  INFO(result.error);
  CHECK(result.code == kExitOk);
  CHECK(result.out.find("one run: spread unknown") != std::string::npos);
  const Json document = Json::parse_file(scratch_folder() + "/one.json");
  for (const Json& metric : document.find("metrics")->as_array()) {
    CHECK(metric.find("live_sd")->is_null());
    CHECK(metric.find("inconclusive")->as_bool());
  }
}

TEST_CASE("a calibration that is stopped writes no profile", "[live]") {
  Running early("calibrate-early", {"calibrate", "demo", "--seconds", "3", "-v", "--json", "--to", "p.json"});
  REQUIRE(early.wait_for_text("the machine's limits"));
  early.send(SIGINT);
  CHECK(early.finish() == kExitInterrupted);
  CHECK(early.out().empty());
  CHECK(early.error().find("interrupted: no profile was written") != std::string::npos);
  CHECK(early.error().find("error") == std::string::npos);
  CHECK(early.files().empty());
  // Between the limits and the fit.
  Running later("calibrate-later", {"calibrate", "demo", "--seconds", "5", "-v", "--to", "p.json"});
  REQUIRE(later.wait_for_text("calibrate: pass"));
  later.send(SIGTERM);
  CHECK(later.finish() == kExitInterrupted);
  CHECK(later.files().empty());
}

TEST_CASE("a second Ctrl-C ends the program at once", "[cli]") {
  // The limits of the machine are measured without looking at the flag, for seconds.
  Running program("twice", {"calibrate", "demo", "--seconds", "600", "-v", "--to", "p.json"});
  REQUIRE(program.wait_for_text("the machine's limits"));
  CHECK(program.finish_by(SIGINT) == 1000 + SIGINT);
  CHECK(program.out().empty());
  CHECK(program.files().empty());
}

TEST_CASE("a second signal leaves no draft of any file", "[cli]") {
  for (const auto& [first, second] :
       {std::pair(SIGINT, SIGINT), std::pair(SIGTERM, SIGINT), std::pair(SIGINT, SIGTERM)}) {
    INFO("signals " << first << ", " << second);
    // After the first one a report of very many requests is made, which takes long enough for a second one.
    Running program("drafts-" + std::to_string(first) + "-" + std::to_string(second),
                    with(kLongRun, {"--requests-file", "each.csv.gz", "--step-log", "steps.jsonl"}));
    REQUIRE(program.wait_for_bytes("steps.jsonl", std::uintmax_t{20} << 20));
    program.send(first);
    const int code = program.finish_by(second);
    // It may have been done before the second one came; then its files are whole. Two that come together are
    // seen in either order.
    if (code == kExitInterrupted) {
      CHECK((program.files() == Names{"each.csv.gz", "steps.jsonl"}));
    } else {
      CHECK((code == 1000 + second || code == 1000 + first));
      CHECK(program.files().empty());
    }
  }
}

TEST_CASE("a validation that is stopped prints the part that it has", "[live]") {
  for (const char* moment : {"profile hash", "validate: "}) {
    INFO(moment);
    Running program(std::string("validate-") + moment[0] + moment[1],
                    {"validate", "demo", "-v", "--json", "-O", "copy.json"});
    REQUIRE(program.wait_for_text(moment));
    program.send(SIGINT);
    CHECK(program.finish() == kExitInterrupted);
    interrupted_document(program);
    CHECK((program.files() == Names{"copy.json"}));
    CHECK((program.made("copy.json") == program.out()));
  }
}

TEST_CASE("a fault on the way leaves no step to the threads", "[live]") {
  // The fault shows while a step is in flight: everything must still come to an end, with the right code.
  std::string rows = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 30; ++i) rows += "0,64,20\n";
  write_file(scratch_folder() + "/late-fault.csv", rows + "0.05,64,5\n0.1,x,5\n");
  Running program("fault", {"live", "demo", "-q", "--trace", scratch_folder() + "/late-fault.csv"});
  CHECK(program.finish() == kExitInput);
  CHECK(program.error().find("late-fault.csv:33: expected input tokens") != std::string::npos);
  CHECK(program.out().empty());
}

TEST_CASE("a reader that leaves early ends every command quietly", "[cli]") {
  std::string rows = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 20000; ++i) rows += std::to_string(i) + ",64,20\n";
  write_file(scratch_folder() + "/many.csv", rows);
  for (const char* arguments :
       {"trace convert many.csv -q", "trace head many.csv -q", "trace scale many.csv --factor 2 -q",
        "trace synth --rate 5 --requests 20000 -q", "simulate chat-8b-h100 --requests 50 --json -q",
        "help metrics", "simulate --help"}) {
    const ProgramResult result = run_program(arguments, "", "| head -c 1");
    INFO(arguments << ": " << result.error);
    CHECK(result.code == kExitOk);
    CHECK(result.out.size() == 1);
    CHECK(result.error.empty());
  }
}

}  // namespace foretoken

#include "cli/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"

namespace foretoken {
namespace {

constexpr std::int32_t kColumnsMax = 100;

std::string form_of_file(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() == ".gz") name.replace_extension();
  const std::string extension = name.extension().string();
  if (extension == ".md") return "md";
  if (extension == ".csv") return "csv";
  if (extension == ".json") return "json";
  if (extension == ".txt") return "table";
  throw UsageError("-O " + path + ": expected a name ending in .txt, .md, .csv or .json (.gz too)");
}

std::string form_of_stdout(const OutputOptions& options) {
  if (!options.json) return options.format.empty() ? "table" : options.format;
  if (!options.format.empty() && options.format != "json")
    throw UsageError("--json: expected no -o beside it, or -o json, found -o " + options.format);
  return "json";
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool is_dumb() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

std::int64_t now_ms() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

/// The first time the work is asked to end; the second time, by whichever signal, the process dies of it.
extern "C" void on_interrupt(int number) {
  if (!interrupted().exchange(true)) return;
  unlink_drafts();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

extern "C" void on_abort(int) {
  unlink_drafts();
  _exit(kExitInternal);
}

}  // namespace

void add_common(CommandSpec& command, CommonOptions& options) {
  command.options.push_back({"-q,--quiet", &options.quiet, "", "Nothing on stderr but errors"});
  command.options.push_back(
      {"-v,--verbose", &options.verbose, "", "Progress although stderr is no terminal"});
  command.options.push_back({"--color", &options.color, "WHEN", "auto, always or never"});
}

void add_output(CommandSpec& command, OutputOptions& options) {
  command.options.push_back(
      {"-o,--output", &options.format, "FORM", "Form of the result: table, md, csv, json"});
  command.options.push_back({"--json", &options.json, "", "The same as -o json"});
  command.options.push_back(
      {"-O,--output-file", &options.files, "FILE", "A copy, in the form of its extension; may repeat"});
}

void check_output(const OutputOptions& options, std::string_view forms) {
  std::vector<std::string> wanted = {form_of_stdout(options)};
  for (const std::string& file : options.files) {
    wanted.push_back(form_of_file(file));
    check_folder(file);
  }
  const std::vector<std::string_view> known = split(forms, '|');
  for (const std::string& form : wanted) {
    if (std::find(known.begin(), known.end(), form) != known.end()) continue;
    std::string expected;
    for (const std::string_view name : known) expected.append(expected.empty() ? "" : ", ").append(name);
    const std::string near = nearest(form, {known.begin(), known.end()});
    throw UsageError("-o: expected one of " + expected + ", found \"" + form + "\"" +
                     (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
  }
}

void check_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (folder.empty() || std::filesystem::is_directory(folder, failed)) return;
  throw DeviceError(path + ": cannot write: there is no folder " + folder.string());
}

bool is_wanted(const OutputOptions& options, std::string_view form) {
  return form_of_stdout(options) == form ||
         std::any_of(options.files.begin(), options.files.end(),
                     [&](const std::string& file) { return form_of_file(file) == form; });
}

void deliver(const OutputOptions& options, const Renderer& render) {
  for (const std::string& file : options.files) write_file(file, render(form_of_file(file)));
  print_result(render(form_of_stdout(options)));
}

void print_result(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) return;
    if (count < 0) throw DeviceError(std::string("standard output: cannot write: ") + std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool wants_color(const CommonOptions& options) {
  if (options.color == "always") return true;
  if (options.color == "never") return false;
  if (options.color != "auto")
    throw UsageError("--color: expected auto, always or never, found \"" + options.color + "\"");
  if (is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE") && std::string_view(std::getenv("CLICOLOR_FORCE")) != "0") return true;
  return ::isatty(STDOUT_FILENO) == 1 && !is_dumb();
}

std::int32_t table_columns() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) != 1 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kColumnsMax;
  return std::min<std::int32_t>(kColumnsMax, size.ws_col);
}

Log::Log(const CommonOptions& options)
    : quiet_(options.quiet),
      is_terminal_(::isatty(STDERR_FILENO) == 1 && !is_dumb()),
      verbose_(options.verbose) {}

Log::~Log() { clear(); }

void Log::clear() {
  if (has_progress_ && is_terminal_) std::cerr << "\r\033[K" << std::flush;
  has_progress_ = false;
}

void Log::note(std::string_view text) {
  if (quiet_) return;
  clear();
  std::cerr << text << '\n' << std::flush;
}

void Log::progress(std::string_view text) {
  if (quiet_ || (!is_terminal_ && !verbose_)) return;
  const std::int64_t now = now_ms();
  if (now - last_ms_ < (is_terminal_ ? 100 : 1000)) return;
  last_ms_ = now;
  if (is_terminal_)
    std::cerr << "\r\033[K" << text << std::flush;
  else
    std::cerr << text << '\n' << std::flush;
  has_progress_ = true;
}

std::atomic<bool>& interrupted() {
  static std::atomic<bool> flag{false};
  return flag;
}

void install_signal_handlers() {
  interrupted().store(false);
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  // A terminal that closes, unless nohup said that it may.
  if (std::signal(SIGHUP, on_interrupt) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGABRT, on_abort);
}

int run_guarded(const std::function<int()>& work) {
  const auto fail = [](int code, const char* what) {
    std::cerr << "foretoken: error: " << what << '\n' << std::flush;
    return code;
  };
  try {
    return work();
  } catch (const UsageError& error) {
    return fail(kExitUsage, error.what());
  } catch (const InputError& error) {
    return fail(kExitInput, error.what());
  } catch (const InfeasibleError& error) {
    return fail(kExitInfeasible, error.what());
  } catch (const DeviceError& error) {
    return fail(kExitDevice, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kExitDevice, "memory: the system has not enough left");
  } catch (const std::exception& error) {
    return fail(kExitInternal, error.what());
  }
}

}  // namespace foretoken

#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace foretoken {

/// Options that every command has.
struct CommonOptions {
  bool quiet = false;          ///< Nothing on stderr but errors.
  bool verbose = false;        ///< Progress and remarks although stderr is no terminal.
  std::string color = "auto";  ///< "auto", "always" or "never".
};
/// Options of commands that print a result.
struct OutputOptions {
  std::string format;              ///< Form of what goes to stdout; empty: a table.
  bool json = false;               ///< The same as `format` "json".
  std::vector<std::string> files;  ///< Further copies; their form follows from their extension.
};

/// The options themselves. The structs must outlive the command.
void add_common(CommandSpec& command, CommonOptions& options);
void add_output(CommandSpec& command, OutputOptions& options);

/// Makes text of a result in a form: "table", "md", "csv", "json" or "jsonl"; an empty text says that the
/// command has none such.
using Renderer = std::function<std::string(std::string_view form)>;
/// Refuses a file to write whose folder does not exist, before any work is done: a DeviceError.
void check_folder(const std::string& path);
/// Whether the result or a copy of it has this form.
bool is_wanted(const OutputOptions& options, std::string_view form);
/// Prints the result and writes the copies. A UsageError for a form that is unknown or that the command does
/// not have.
void deliver(const OutputOptions& options, const Renderer& render);
/// Refuses unknown forms before any work is done. `forms` are those the command has, separated by '|'.
void check_output(const OutputOptions& options, std::string_view forms);

/// Writes to stdout at once. A reader that has left is no error; a full disk is a DeviceError.
void print_result(std::string_view text);

/// Whether stdout gets colours: `--color`, then NO_COLOR, CLICOLOR_FORCE, TERM=dumb and whether it is a
/// terminal.
bool wants_color(const CommonOptions& options);
/// Columns of a table: those of the terminal, at most 100; 100 where stdout is none.
std::int32_t table_columns();

/// What goes to stderr: remarks and progress.
class Log {
 public:
  explicit Log(const CommonOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  /// A line that is worth reading later; not when quiet.
  void note(std::string_view text);
  /// The state of the work in one line that the next one replaces; on a terminal only, unless verbose. At
  /// most ten a second.
  void progress(std::string_view text);

 private:
  void clear();
  bool quiet_;
  bool is_terminal_;
  bool verbose_;
  bool has_progress_ = false;
  std::int64_t last_ms_ = 0;
};

/// Set by the first Ctrl-C; the second one removes the drafts of files and ends the program. Long work looks
/// at it and returns what it has.
std::atomic<bool>& interrupted();
/// From now on Ctrl-C, SIGTERM and SIGHUP set `interrupted` (a second one ends the program at once), a closed
/// pipe is an error code, and an abort has the exit code of an internal error.
void install_signal_handlers();

}  // namespace foretoken

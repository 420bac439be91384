#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <string>
#include <variant>
#include <vector>

namespace foretoken {

/// Where an option's value goes. A bool is a flag; a vector takes the option several times.
using OptionTarget = std::variant<bool*, std::string*, std::int64_t*, double*, std::vector<std::string>*>;

/// What stands for a number that was not given.
inline constexpr std::int64_t kNotGiven = INT64_MIN;
inline constexpr double kNumberNotGiven = -1e308;

/// Numbers that an option takes.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool excludes_low = false;  ///< Only numbers above `low`.
};
inline constexpr NumberRange kAboveZero{0, std::numeric_limits<double>::infinity(), true};
/// Counts as far as all of them are exact in JSON.
inline constexpr NumberRange kCounts{1, 9007199254740992.0};
inline constexpr NumberRange kSeeds{0, 9007199254740992.0};
inline constexpr NumberRange kRates{0, 1e9, true};
inline constexpr NumberRange kSeconds{0, 86400, true};
inline constexpr NumberRange kThreads{0, 1024};
inline constexpr NumberRange kRuns{1, 1000};

/// One option or positional argument of a command, as data.
struct OptionSpec {
  std::string names;        ///< "--rate", "-o,--output", or "scenario" for a positional argument.
  OptionTarget target;      ///< Its value stays as it is where the option is not given.
  std::string value;        ///< What stands for the value in help: "FILE", "PER_SECOND"; empty for flags.
  std::string description;  ///< One phrase.
  bool is_required = false;
  NumberRange range = {};  ///< Of a number; others are refused as they were written.
  std::string refusal =
      {};  ///< Why it does not apply here and where it does; empty: it does (refuse_option).
};

/// A command line that shows what a command is for. Every example is run by a test, those that take long with
/// `--dry-run`.
struct Example {
  std::string line;
  bool takes_long = false;
};

/// One command: everything that help, parsing and tests know about it. Its options live in what `run` holds.
struct CommandSpec {
  std::string name;
  std::string description;
  std::vector<Example> examples;
  std::vector<OptionSpec> options;
  std::vector<CommandSpec> children;
  /// Runs the command and returns the exit code; empty where only the children do anything.
  std::function<int()> run;
};

/// Exit codes of the program.
enum ExitCode : int {
  kExitOk = 0,
  kExitFinding = 1,  ///< A threshold failed, plans differ: an answer, not an accident.
  kExitUsage = 2,
  kExitInput = 3,
  kExitInfeasible = 4,
  kExitInternal = 5,
  kExitDevice = 6,
  kExitInterrupted = 130,
};

/// The whole program.
CommandSpec all_commands();

/// Runs `work` and turns what it throws into a line on stderr and the exit code for it.
int run_guarded(const std::function<int()>& work);

}  // namespace foretoken

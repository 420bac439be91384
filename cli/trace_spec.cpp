#include "cli/trace_spec.hpp"

#include <iostream>
#include <memory>
#include <sstream>

#include "cli/output.hpp"
#include "cli/trace_command.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/text.hpp"
#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

struct Options {
  CommonOptions common;
  TraceFlags flags;
  std::string path;
  std::string output = "-";
  std::string source;
  std::string license;
  std::string from;
  std::string to;
  std::string duration;
  std::string workload;
  std::string arrivals;
  std::string prompt;
  std::string answer;
  std::int64_t count = 0;
  std::int64_t requests = kNotGiven;
  std::int64_t seed = kNotGiven;
  double rate = kNumberNotGiven;
  double factor = kNumberNotGiven;
  double cv = kNumberNotGiven;
  bool json = false;
};

/// Lengths of a production chat service, where none are given.
constexpr std::string_view kPrompt = "log-normal:mean=1155,sd=1109,max=14050";
constexpr std::string_view kAnswer = "log-normal:mean=211,sd=163,max=1000";

std::string_view or_else(const std::string& given, std::string_view usual) {
  return given.empty() ? usual : std::string_view(given);
}

double or_else(double given, double usual) { return given == kNumberNotGiven ? usual : given; }

TraceInput input_of(const Options& options) { return {options.path, trace_read_options(options.flags)}; }

/// Where remarks go; nowhere when quiet.
std::ostream& log_of(const Options& options) {
  static std::ostream nowhere(nullptr);
  return options.common.quiet ? nowhere : std::cerr;
}

void add_input(CommandSpec& command, Options& options) {
  command.options.push_back({"trace", &options.path, "FILE", "Trace to read; - is standard input", true});
  add_trace_flags(command, options.flags);
}

void add_output_path(CommandSpec& command, Options& options) {
  command.options.push_back(
      {"-O,--output-file", &options.output, "FILE", "Trace to write; - is standard output"});
}

void add_provenance(CommandSpec& command, Options& options) {
  command.options.push_back(
      {"--source", &options.source, "TEXT", "Where the trace comes from, for its header"});
  command.options.push_back({"--license", &options.license, "TEXT", "Its licence, for the header"});
}

Duration window_end(const Options& options) {
  return options.to.empty() ? kForever : parse_duration_flag(options.to, "--to");
}

CommandSpec inspect_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"inspect",
                      "What a trace holds, and what to mind",
                      {{"foretoken trace inspect scenarios/traces/sample-chat.jsonl"},
                       {"foretoken trace inspect scenarios/traces/sample-chat.jsonl --json"}},
                      {},
                      {},
                      {}};
  add_input(command, *options);
  command.options.push_back({"--json", &options->json, "", "One JSON document"});
  add_common(command, options->common);
  command.run = [options] {
    std::ostringstream out;
    trace_inspect({input_of(*options), options->json}, out, log_of(*options));
    print_result(out.str());
    return kExitOk;
  };
  return command;
}

CommandSpec convert_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"convert",
                      "Any format to canonical JSONL",
                      {{"foretoken trace convert scenarios/traces/sample-chat.jsonl -O trace.jsonl.gz"},
                       {"foretoken trace convert trace.jsonl.gz --spread-ties uniform -O spread.jsonl"}},
                      {},
                      {},
                      {}};
  add_input(command, *options);
  add_output_path(command, *options);
  add_provenance(command, *options);
  add_common(command, options->common);
  command.run = [options] {
    trace_convert({input_of(*options), options->output, options->source, options->license}, log_of(*options));
    return kExitOk;
  };
  return command;
}

CommandSpec head_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"head",
                      "The first requests, or a window in time",
                      {{"foretoken trace head scenarios/traces/sample-chat.jsonl -n 100 -O head.jsonl"},
                       {"foretoken trace head head.jsonl --from 1s --to 20s -O window.jsonl"}},
                      {},
                      {},
                      {}};
  add_input(command, *options);
  add_output_path(command, *options);
  command.options.push_back(
      {"-n,--requests", &options->count, "COUNT", "Requests at most; 0: all", false, {0, kCounts.high}});
  command.options.push_back({"--from", &options->from, "DURATION", "Begin of the window"});
  command.options.push_back({"--to", &options->to, "DURATION", "End of the window"});
  add_common(command, options->common);
  command.run = [options] {
    const Duration from = options->from.empty() ? Duration{} : parse_duration_flag(options->from, "--from");
    trace_head({input_of(*options), options->output, options->count, from, window_end(*options)},
               log_of(*options));
    return kExitOk;
  };
  return command;
}

CommandSpec scale_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{
      "scale",
      "The same requests at another rate; burstiness stays",
      {{"foretoken trace scale scenarios/traces/sample-chat.jsonl --factor 1.5 -O faster.jsonl"},
       {"foretoken trace scale faster.jsonl --rate 10 -O ten.jsonl"}},
      {},
      {},
      {}};
  add_input(command, *options);
  add_output_path(command, *options);
  command.options.push_back({"--rate", &options->rate, "PER_SECOND", "Mean rate to reach", false, kRates});
  command.options.push_back(
      {"--factor", &options->factor, "NUMBER", "Arrivals come this many times as fast", false, kAboveZero});
  add_common(command, options->common);
  command.run = [options] {
    trace_scale({input_of(*options), options->output, or_else(options->rate, 0), or_else(options->factor, 0)},
                log_of(*options));
    return kExitOk;
  };
  return command;
}

/// A file says all of it itself.
void refuse_beside_workload(const Options& options) {
  const std::pair<bool, const char*> flags[] = {
      {options.rate != kNumberNotGiven, "--rate"}, {options.requests != kNotGiven, "--requests"},
      {!options.duration.empty(), "--duration"},   {!options.arrivals.empty(), "--arrivals"},
      {options.cv != kNumberNotGiven, "--cv"},     {!options.prompt.empty(), "--prompt"},
      {!options.answer.empty(), "--answer"},       {options.seed != kNotGiven, "--seed"}};
  for (const auto& [is_given, name] : flags)
    if (is_given)
      throw UsageError(std::string(name) +
                       ": expected no --workload beside it, since that file says it; found both");
}

WorkloadSpec synthetic_workload(const Options& options) {
  if (!options.workload.empty()) {
    refuse_beside_workload(options);
    return read_workload_file(options.workload);
  }
  WorkloadSpec workload;
  const bool is_gamma = options.arrivals == "gamma";
  if (!is_gamma && or_else(options.arrivals, "poisson") != "poisson")
    throw UsageError("--arrivals: expected poisson or gamma, found \"" + options.arrivals + "\"");
  if (!is_gamma && options.cv != kNumberNotGiven)
    throw UsageError("--cv: expected --arrivals gamma beside it, since Poisson arrivals have a CV of 1");
  if (options.rate == kNumberNotGiven) throw UsageError("--rate: expected requests per second, found none");
  workload.arrivals.kind = is_gamma ? ArrivalKind::gamma : ArrivalKind::poisson;
  workload.arrivals.rate_per_s = options.rate;
  workload.arrivals.cv = or_else(options.cv, 1);
  ClassSpec& kind = workload.classes.emplace_back();
  kind.prompt_tokens = parse_length(or_else(options.prompt, kPrompt), "--prompt");
  kind.output_tokens = parse_length(or_else(options.answer, kAnswer), "--answer");
  if (options.requests != kNotGiven) workload.requests = options.requests;
  if (!options.duration.empty()) workload.duration = parse_duration_flag(options.duration, "--duration");
  workload.seed = options.seed == kNotGiven ? 1 : static_cast<std::uint64_t>(options.seed);
  return workload;
}

CommandSpec synth_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{
      "synth",
      "A synthetic trace that says in its header how it was made",
      {{"foretoken trace synth --rate 5 --requests 1000 -O chat.jsonl"},
       {"foretoken trace synth --arrivals gamma --cv 3 --rate 2 --duration 10m --prompt uniform:8..512 "
        "--answer 64 -O bursts.jsonl"}},
      {},
      {},
      {}};
  command.options = {
      {"--rate", &options->rate, "PER_SECOND", "Mean rate", false, kRates},
      {"--requests", &options->requests, "COUNT", "Requests at most", false, kCounts},
      {"--duration", &options->duration, "DURATION", "Nothing arrives later"},
      {"--arrivals", &options->arrivals, "KIND", "poisson or gamma"},
      {"--cv", &options->cv, "NUMBER", "Coefficient of variation of gamma gaps", false, {0.01, 100}},
      {"--prompt", &options->prompt, "LENGTH", "120, uniform:8..512 or log-normal:mean=120,p99=600"},
      {"--answer", &options->answer, "LENGTH", "Likewise for the answer"},
      {"--workload", &options->workload, "FILE", "A workload section instead of these flags"},
      {"--seed", &options->seed, "NUMBER", "Seed", false, kSeeds}};
  add_output_path(command, *options);
  add_provenance(command, *options);
  add_common(command, options->common);
  command.run = [options] {
    trace_synth({synthetic_workload(*options), options->output, options->source, options->license},
                log_of(*options));
    return kExitOk;
  };
  return command;
}

}  // namespace

void add_trace_flags(CommandSpec& command, TraceFlags& flags) {
  command.options.push_back(
      {"--format", &flags.format, "NAME", "detect, azure, burstgpt, mooncake, bailian, canonical or csv"});
  command.options.push_back({"--columns", &flags.columns, "OURS=THEIRS,...", "Columns of a plain CSV"});
  command.options.push_back({"--sort", &flags.sort, "", "Sort rows that are out of order"});
  command.options.push_back(
      {"--spread-ties", &flags.spread_ties, "HOW", "none, or uniform within a tick of the clock"});
  command.options.push_back(
      {"--zero-output", &flags.zero_output, "HOW", "Rows without an answer: by-format, drop or keep"});
}

std::string first_trace_flag(const TraceFlags& flags) {
  if (!flags.format.empty()) return "--format";
  if (!flags.columns.empty()) return "--columns";
  if (flags.sort) return "--sort";
  if (!flags.spread_ties.empty()) return "--spread-ties";
  return flags.zero_output.empty() ? "" : "--zero-output";
}

TraceReadOptions trace_read_options(const TraceFlags& flags) {
  TraceReadOptions read;
  read.format = trace_format(or_else(flags.format, "detect"));
  if (!flags.columns.empty()) read.columns = parse_columns(flags.columns);
  if (!flags.columns.empty() && read.format != TraceFormat::detect && read.format != TraceFormat::csv)
    throw UsageError(
        "--columns: expected --format csv or none beside it, since other formats have names of their "
        "own, found --format " +
        flags.format);
  read.sort = flags.sort;
  const std::string_view spread = or_else(flags.spread_ties, "none");
  if (spread != "none" && spread != "uniform")
    throw UsageError("--spread-ties: expected none or uniform, found \"" + flags.spread_ties + "\"");
  read.spread_ties = spread == "uniform" ? SpreadTies::uniform : SpreadTies::none;
  const std::string_view zero = or_else(flags.zero_output, "by-format");
  if (zero == "drop") {
    read.zero_output = ZeroOutput::drop;
  } else if (zero == "keep") {
    read.zero_output = ZeroOutput::keep;
  } else if (zero != "by-format") {
    throw UsageError("--zero-output: expected by-format, drop or keep, found \"" + flags.zero_output + "\"");
  }
  return read;
}

Duration parse_duration_flag(const std::string& text, std::string_view flag) {
  const auto picoseconds_given = parse_duration_ps(text);
  if (!picoseconds_given || *picoseconds_given < 0)
    throw UsageError(std::string(flag) +
                     ": expected a duration with its unit, such as 90s or 250ms, found \"" + text + "\"");
  return Duration(*picoseconds_given);
}

CommandSpec trace_spec() {
  return {"trace",
          "Look at, convert, cut, scale and make traces; never edits in place",
          {{"foretoken trace inspect scenarios/traces/sample-chat.jsonl"},
           {"foretoken trace convert scenarios/traces/sample-chat.jsonl -O trace.jsonl.gz"},
           {"foretoken trace synth --rate 5 --requests 1000 -O chat.jsonl"}},
          {},
          {inspect_spec(), convert_spec(), head_spec(), scale_spec(), synth_spec()},
          {}};
}

}  // namespace foretoken

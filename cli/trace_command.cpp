#include "cli/trace_command.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <unordered_set>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"
#include "sim/workload/trace_summary.hpp"
#include "sim/workload/trace_writer.hpp"
#include "sim/workload/workload_json.hpp"

namespace foretoken {
namespace {

constexpr int kSchemaVersion = 1;

/// What becomes of a row that is copied.
enum class Verdict { keep, skip, stop };

/// SHA-256 of the bytes on disk, as sha256sum prints it; empty for standard input and pipes.
std::string file_sha256(const std::string& path) {
  // A pipe cannot be read twice: opening it again would wait for ever.
  if (!std::filesystem::is_regular_file(path)) return "";
  std::ifstream file(path, std::ios::binary);
  Sha256 hash;
  std::string chunk(std::size_t{1} << 20, '\0');
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    hash.update(std::string_view(chunk.data(), static_cast<std::size_t>(file.gcount())));
  }
  return hash.hex();
}

std::string base_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void refuse_in_place(const std::string& input, const std::string& output) {
  std::error_code error;
  if (input != "-" && output != "-" && std::filesystem::equivalent(input, output, error)) {
    throw UsageError("-O: expected another file than the input, found " + output +
                     "; traces are never edited in place");
  }
}

std::string percent(double share) { return short_number(share * 100.0) + " %"; }

std::string whole(double value) { return with_commas(std::llround(value)); }

void print_warnings(const std::vector<WorkloadWarning>& warnings, std::ostream& log) {
  for (const WorkloadWarning warning : warnings) log << "warning: " << advice(warning) << '\n';
}

/// What a look at all rows shows, with how many rows it is about.
struct RowWarning {
  WorkloadWarning kind;
  std::int64_t rows = 0;
};

std::vector<RowWarning> row_warnings(const TraceSummary& summary) {
  std::vector<RowWarning> found;
  for (const RowWarning& warning : {RowWarning{WorkloadWarning::duplicate_ids, summary.duplicate_ids()},
                                    RowWarning{WorkloadWarning::unknown_after, summary.unknown_after()}})
    if (warning.rows > 0) found.push_back(warning);
  return found;
}

void print_row_warnings(const TraceSummary& summary, std::ostream& log) {
  for (const RowWarning& warning : row_warnings(summary))
    log << "warning: " << advice(warning.kind) << "; rows: " << with_commas(warning.rows) << '\n';
}

void print_read(const TraceInfo& info, std::ostream& log) {
  log << "read " << info.path << ": format " << facts(info.format).name << ", "
      << with_commas(info.counts.kept) << " requests";
  if (info.counts.zero_output_dropped > 0) {
    log << ", " << with_commas(info.counts.zero_output_dropped) << " rows without output dropped";
  }
  log << '\n';
}

/// The header of what is made from a trace: what its own header says, and where it comes from.
Json derived_header(const TraceInput& input, const TraceInfo& info, const std::string& how) {
  Json header = info.header.is_object() ? info.header : Json::object();
  if (header.find("source") == nullptr) {
    header.set("source", base_name(info.path) + " (format " + std::string(facts(info.format).name) + ")");
  }
  header.set("made_by", how);
  if (const std::string sha256 = file_sha256(input.path); !sha256.empty())
    header.set("sha256_of_input", sha256);
  if (info.spread_ties == SpreadTies::uniform) header.set("spread_ties", "uniform");
  if (info.block_tokens > 0) header.set("block_tokens", info.block_tokens);
  return header;
}

/// Copies the rows that `change` keeps; it may alter them. The header is known before the first row is read,
/// since the reader has seen the first line by then; for canonical traces that needs the first row.
template <class Change>
void copy_trace(const TraceInput& input, const std::string& output, const std::string& how, std::ostream& log,
                const Change& change, const Json& additions = Json()) {
  refuse_in_place(input.path, output);
  TraceReader reader(input.path, input.read);
  TraceRecord record;
  bool more = reader.next(record);
  Json header = derived_header(input, reader.info(), how);
  if (additions.is_object()) {
    for (const auto& [key, value] : additions.as_object()) header.set(key, value);
  }
  TraceWriter writer(output, header);
  std::int64_t written = 0;
  for (; more; more = reader.next(record)) {
    const auto verdict = change(record);
    if (verdict == Verdict::stop) break;
    if (verdict == Verdict::skip) continue;
    writer.write(record);
    ++written;
  }
  writer.commit();
  print_read(reader.info(), log);
  print_warnings(reader.warnings(), log);
  log << "wrote " << (output == "-" ? "standard output" : output) << ": " << with_commas(written)
      << " requests\n";
}

void print_tokens(std::string_view title, const TokenHistogram& tokens, std::ostream& out) {
  const auto cell = [](const std::string& text) {
    return std::string(text.size() < 11 ? 11 - text.size() : 1, ' ') + text;
  };
  out << "  " << title << std::string(6 - title.size(), ' ') << cell(whole(tokens.mean()));
  for (const double p : {50.0, 90.0, 99.0}) out << cell(whole(tokens.percentile(p)));
  out << cell(with_commas(tokens.max())) << '\n';
}

void print_shares(std::string_view title, const std::map<std::string, std::int64_t>& counts,
                  std::ostream& out) {
  if (counts.empty()) return;
  constexpr std::size_t columns_max = 100;
  std::string line = std::string(title) + std::string(10 - title.size(), ' ');
  for (const auto& [name, count] : counts) {
    const std::string item = (line.size() > 10 ? ", " : "") + name.substr(0, 40) + " " + with_commas(count);
    if (line.size() + item.size() > columns_max - 5) {
      line += ", ...";
      break;
    }
    line += item;
  }
  out << line << '\n';
}

void print_table(const TraceInfo& info, const TraceSummary& summary,
                 const std::vector<WorkloadWarning>& warnings, std::ostream& out) {
  const TraceFormatFacts& format = facts(info.format);
  out << "format " << format.name << ", arrivals in " << format.time_unit;
  if (info.block_tokens > 0) out << ", blocks of " << info.block_tokens << " tokens";
  out << '\n'
      << with_commas(summary.requests()) << " requests, " << duration_text(summary.span_ns() * 1000) << ", "
      << short_number(summary.rate_per_s()) << " req/s, arrival CV " << short_number(summary.arrival_cv())
      << ", " << with_commas(info.counts.distinct_times) << " distinct times";
  if (summary.closed_loop() > 0) out << ", " << with_commas(summary.closed_loop()) << " after others";
  out << "\npeak " << with_commas(summary.peak_per_s()) << " in one second, " << percent(summary.idle_share())
      << " of seconds idle, index of dispersion " << short_number(summary.dispersion()) << '\n';
  print_warnings(warnings, out);
  print_row_warnings(summary, out);
  out << "tokens        mean        p50        p90        p99        max\n";
  print_tokens("in", summary.input(), out);
  print_tokens("out", summary.output(), out);
  if (summary.has_prefixes())
    out << "prefix reuse (infinite cache) " << percent(summary.prefix_reuse()) << '\n';
  print_shares("classes", summary.classes(), out);
  print_shares("tenants", summary.tenants(), out);
  print_shares("sources", summary.sources(), out);
  print_shares("models", summary.models(), out);
  if (info.counts.zero_output_dropped > 0) {
    out << with_commas(info.counts.zero_output_dropped) << " of " << with_commas(info.counts.rows)
        << " rows had no output tokens and were dropped\n";
  }
  if (!info.ignored_columns.empty()) {
    std::string line = "columns without meaning here:";
    for (const std::string& column : info.ignored_columns) line += " \"" + column + "\"";
    out << (line.size() > 100 ? line.substr(0, 97) + "..." : line) << '\n';
  }
}

Json tokens_json(const TokenHistogram& tokens) {
  return Json::object({{"mean", tokens.mean()},
                       {"p50", tokens.percentile(50)},
                       {"p90", tokens.percentile(90)},
                       {"p99", tokens.percentile(99)},
                       {"max", tokens.max()}});
}

Json shares_json(const std::map<std::string, std::int64_t>& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) json.set(name, count);
  return json;
}

Json inspect_json(const TraceInspectOptions& options, const TraceInfo& info, const TraceSummary& summary,
                  const std::vector<WorkloadWarning>& warnings) {
  const TraceFormatFacts& format = facts(info.format);
  const TraceCounts& counts = info.counts;
  Json texts = Json::array();
  for (const WorkloadWarning warning : warnings) {
    texts.push_back(Json::object({{"name", name(warning)}, {"advice", advice(warning)}}));
  }
  for (const RowWarning& warning : row_warnings(summary)) {
    texts.push_back(Json::object(
        {{"name", name(warning.kind)}, {"rows", warning.rows}, {"advice", advice(warning.kind)}}));
  }
  Json result = Json::object({{"format", format.name},
                              {"time_unit", format.time_unit},
                              {"block_tokens", info.block_tokens},
                              {"rows", counts.rows},
                              {"requests", summary.requests()},
                              {"zero_output_dropped", counts.zero_output_dropped},
                              {"hashes_cut", counts.hashes_cut},
                              {"out_of_order", counts.out_of_order},
                              {"after_others", summary.closed_loop()},
                              {"duplicate_ids", summary.duplicate_ids()},
                              {"unknown_after", summary.unknown_after()},
                              {"span_s", static_cast<double>(summary.span_ns()) / 1e9},
                              {"rate_per_s", summary.rate_per_s()},
                              {"arrival_cv", summary.arrival_cv()},
                              {"distinct_times", counts.distinct_times},
                              {"peak_per_s", summary.peak_per_s()},
                              {"idle_share", summary.idle_share()},
                              {"dispersion", summary.dispersion()},
                              {"input_tokens", tokens_json(summary.input())},
                              {"output_tokens", tokens_json(summary.output())},
                              {"classes", shares_json(summary.classes())},
                              {"tenants", shares_json(summary.tenants())},
                              {"sources", shares_json(summary.sources())},
                              {"models", shares_json(summary.models())}});
  if (summary.has_prefixes()) result.set("prefix_reuse", summary.prefix_reuse());
  Json ignored = Json::array();
  for (const std::string& column : info.ignored_columns) ignored.push_back(column);
  result.set("ignored_columns", ignored);
  result.set("header", info.header);
  Json input = Json::object({{"path", options.input.path}, {"sha256", file_sha256(options.input.path)}});
  return Json::object(
      {{"schema_version", kSchemaVersion},
       {"tool_version", build_info().version},
       {"command", "trace inspect"},
       {"inputs", Json::array({input})},
       {"config", Json::object({{"spread_ties", info.spread_ties == SpreadTies::uniform ? "uniform" : "none"},
                                {"sort", options.input.read.sort}})},
       {"result", result},
       {"warnings", texts}});
}

TraceRecord record_of(const Offer& offer, const WorkloadNames& names, std::int64_t number) {
  const Request& request = offer.request;
  const auto label = [](const std::vector<std::string>& table, std::uint16_t index) {
    return table[index] == "default" ? std::string() : table[index];
  };
  TraceRecord record;
  record.id = std::to_string(number);
  record.arrival_ns = picoseconds(request.arrival) / 1000;
  record.input_tokens = request.prompt_tokens;
  record.output_tokens = offer.output_tokens;
  record.max_new_tokens = request.max_new_tokens;
  record.priority = request.priority;
  record.slo_class = label(names.slo_classes, request.slo_class);
  record.tenant = label(names.tenants, request.tenant);
  record.source = label(names.sources, request.source);
  record.prefix_hashes.assign(request.prefix_hashes.begin(), request.prefix_hashes.end());
  record.block_tokens = request.hash_block_tokens;
  record.patience = offer.patience;
  record.cancel_after = offer.cancel_after;
  return record;
}

}  // namespace

void trace_inspect(const TraceInspectOptions& options, std::ostream& out, std::ostream& log) {
  TraceReader reader(options.input.path, options.input.read);
  TraceSummary summary;
  TraceRecord record;
  while (reader.next(record)) summary.add(record);
  const auto warnings = reader.warnings();
  if (options.json) {
    print_warnings(warnings, log);
    print_row_warnings(summary, log);
    out << inspect_json(options, reader.info(), summary, warnings).dump(2) << '\n';
  } else {
    print_table(reader.info(), summary, warnings, out);
  }
}

void trace_convert(const TraceConvertOptions& options, std::ostream& log) {
  Json additions = Json::object();
  if (!options.source.empty()) additions.set("source", options.source);
  if (!options.license.empty()) additions.set("license", options.license);
  copy_trace(
      options.input, options.output, "foretoken trace convert", log,
      [](TraceRecord&) { return Verdict::keep; }, additions);
}

void trace_head(const TraceHeadOptions& options, std::ostream& log) {
  const std::int64_t from_ns = options.from.count() / 1000;
  const std::int64_t to_ns = options.to == kForever ? INT64_MAX : options.to.count() / 1000;
  if (options.count < 0) throw UsageError("-n: expected a number that is not negative");
  std::int64_t kept = 0;
  std::unordered_set<std::string> ids;
  copy_trace(options.input, options.output, "foretoken trace head", log, [&](TraceRecord& record) {
    if (options.count > 0 && kept >= options.count) return Verdict::stop;
    // A turn whose earlier turn was left out could never arrive.
    const bool inside = record.after_id.empty() ? record.arrival_ns >= from_ns && record.arrival_ns < to_ns
                                                : ids.contains(record.after_id);
    if (!inside) return Verdict::skip;
    if (!record.id.empty()) ids.insert(record.id);
    if (record.after_id.empty()) record.arrival_ns -= from_ns;
    ++kept;
    return Verdict::keep;
  });
}

void trace_scale(const TraceScaleOptions& options, std::ostream& log) {
  if (!std::isfinite(options.rate_per_s) || !std::isfinite(options.factor))
    throw UsageError("--rate and --factor: expected a finite number");
  const bool by_rate = options.rate_per_s > 0.0, by_factor = options.factor > 0.0;
  if (by_rate == by_factor)
    throw UsageError("expected one of --rate and --factor above 0, found " +
                     std::string(by_rate ? "both" : "neither"));
  double factor = options.factor;
  if (by_rate) {
    if (options.input.path == "-")
      throw UsageError("--rate: expected a file to measure first, found standard input; --factor works");
    TraceSpec trace;
    trace.path = options.input.path;
    trace.read = options.input.read;
    factor = options.rate_per_s / measure_rate_per_s(trace);
  }
  const auto change = [&](TraceRecord& record) {
    const double scaled = static_cast<double>(record.arrival_ns) / factor;
    if (!(scaled < 9e18)) {
      throw input_error(options.input.path + ":" + std::to_string(record.line),
                        "arrivals within 285 years after scaling", "a later one");
    }
    record.arrival_ns = static_cast<std::int64_t>(scaled + 0.5);
    return Verdict::keep;
  };
  copy_trace(options.input, options.output, "foretoken trace scale", log, change,
             Json::object({{"rate_scale", factor}}));
}

void trace_synth(const TraceSynthOptions& options, std::ostream& log) {
  const WorkloadSpec& spec = options.workload;
  if (spec.arrivals.kind == ArrivalKind::closed_loop) {
    throw InputError("a closed loop has no arrivals of its own to write down; run it as a scenario");
  }
  const bool bounded =
      spec.requests > 0 || spec.duration != kForever || spec.arrivals.kind == ArrivalKind::trace;
  if (!bounded) throw UsageError("expected a number of requests or a duration, found neither");
  const auto source = make_source(spec);
  const std::string& provenance = options.source.empty() ? spec.provenance : options.source;
  const std::string& license = options.license.empty() ? spec.license : options.license;
  Json header = Json::object({{"source", provenance.empty() ? "synthetic, no measured data" : provenance}});
  if (!license.empty()) header.set("license", license);
  header.set("made_by", "foretoken trace synth");
  for (const ClassSpec& entry : spec.classes) {
    // Rows of classes with other blocks say so themselves.
    if (entry.prefix.share > 0.0) header.set("block_tokens", entry.prefix.block_tokens);
  }
  header.set("workload", to_json(spec));
  TraceWriter writer(options.output, header);
  std::int64_t written = 0;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    writer.write(record_of(offer, source->names(), written++));
  }
  writer.commit();
  print_warnings(source->warnings(), log);
  log << "wrote " << (options.output == "-" ? "standard output" : options.output) << ": "
      << with_commas(written) << " requests\n";
}

}  // namespace foretoken

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json.hpp"
#include "sim/metrics/step_log.hpp"

namespace foretoken {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kMost32 = std::numeric_limits<std::int32_t>::max();

Time read_time(JsonReader& reader, std::string_view key) {
  return Time(Duration(reader.integer(key, 0, kMost)));
}

Duration read_wait(JsonReader& reader, std::string_view key) {
  return Duration(reader.integer(key, kForever.count(), 0, kMost));
}

std::int32_t read_count(JsonReader& reader, std::string_view key) {
  return static_cast<std::int32_t>(reader.integer(key, 0, 0, kMost32));
}

std::uint64_t read_hash(JsonReader& reader, std::string_view key) {
  const std::string text = reader.string(key);
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || result.ec != std::errc{} || result.ptr != text.data() + text.size())
    reader.fail(key, "16 hexadecimal digits", "'" + text + "'");
  return value;
}

LoggedArrival read_arrival(JsonReader& reader, StepLog& log) {
  LoggedArrival arrival;
  Request& request = arrival.offer.request;
  request.id = static_cast<RequestId>(reader.integer("id", 0, 0xffffffff));
  request.arrival = read_time(reader, "arrival");
  request.prompt_tokens = static_cast<std::int32_t>(reader.integer("prompt", 1, kMost32));
  request.max_new_tokens = static_cast<std::int32_t>(reader.integer("max_new", -1, -1, kMost32));
  request.predicted_output_tokens = read_count(reader, "predicted");
  request.priority = static_cast<std::int32_t>(
      reader.integer("priority", 0, std::numeric_limits<std::int32_t>::min(), kMost32));
  request.slo_class = static_cast<std::uint16_t>(reader.integer("class", 0, 0, 0xffff));
  request.tenant = static_cast<std::uint16_t>(reader.integer("tenant", 0, 0, 0xffff));
  request.source = static_cast<std::uint16_t>(reader.integer("source", 0, 0, 0xffff));
  request.hash_block_tokens = read_count(reader, "hash_block");
  arrival.offer.output_tokens = static_cast<std::int32_t>(reader.integer("output", 0, kMost32));
  arrival.offer.patience = read_wait(reader, "patience");
  arrival.offer.cancel_after = read_wait(reader, "cancel_after");
  arrival.visible = read_time(reader, "visible");
  if (const Json* hashes = reader.get("hashes")) {
    if (!hashes->is_array()) reader.fail("hashes", "an array of integers", hashes->describe());
    std::vector<std::uint64_t>& own = log.hashes.emplace_back();
    for (const Json& hash : hashes->as_array()) {
      if (!hash.is_integer()) reader.fail("hashes", "an array of integers", hash.describe());
      own.push_back(hash.as_uint64());
    }
    request.prefix_hashes = own;
  }
  arrival.handle = static_cast<Handle>(reader.integer("handle", 0xffffffff, 0, 0xffffffff));
  const bool is_refused = arrival.handle == kNoHandle;
  const int refusal = reader.choice("refused", {"none", "exceeds_context", "never_fits"}, 0);
  arrival.refusal = static_cast<Refusal>(refusal);
  if (is_refused != (refusal != 0)) reader.fail("", "either a handle or a refusal", "both or neither");
  return arrival;
}

LoggedStep read_step(JsonReader& reader) {
  LoggedStep step;
  step.number = static_cast<std::uint64_t>(reader.integer("n", 0, kMost));
  step.plan_hash = read_hash(reader, "hash");
  step.begin = read_time(reader, "begin");
  step.first = Duration(reader.integer("first", 0, kMost));
  step.growth = Duration(reader.integer("growth", 0, -kMost, kMost));
  step.repeats = reader.integer("repeats", 1, 1, kMost);
  step.repeat_first = reader.integer("repeat_first", 0, 0, kMost);
  step.decode_emissions = read_count(reader, "emitted");
  step.new_tokens = reader.integer("tokens", 0, kMost);
  return step;
}

LoggedEnd read_end(JsonReader& reader) {
  LoggedEnd end;
  end.id = static_cast<RequestId>(reader.integer("id", 0, 0xffffffff));
  end.handle = static_cast<Handle>(reader.integer("handle", 0, 0xffffffff));
  end.how = static_cast<Ending>(reader.choice("how", {"finished", "cancelled", "rejected"}, 0));
  end.emitted = read_count(reader, "emitted");
  end.t = read_time(reader, "t");
  return end;
}

void read_event(const Json& line, const std::string& path, StepLog& log) {
  JsonReader reader(line, path);
  switch (reader.choice("event", {"arrival", "step", "end", "close"}, 3)) {
    case 0:
      log.arrivals.push_back(read_arrival(reader, log));
      log.order.push_back(LogEvent::arrival);
      break;
    case 1:
      log.steps.push_back(read_step(reader));
      log.order.push_back(LogEvent::step);
      break;
    case 2:
      log.ends.push_back(read_end(reader));
      log.order.push_back(LogEvent::end);
      break;
    default:
      reader.integer("events", static_cast<std::int64_t>(log.order.size()),
                     static_cast<std::int64_t>(log.order.size()));
      log.cut = false;
      break;
  }
  reader.finish();
}

StepLogHeader read_header(const Json& line, const std::string& path) {
  JsonReader reader(line, path);
  StepLogHeader header;
  if (reader.string("foretoken", "") != "step-log") reader.fail("foretoken", "\"step-log\"", "another file");
  reader.integer("version", 1, 1);
  header.config_hash = reader.string("config_hash", "");
  header.profile_hash = reader.string("profile_hash", "");
  header.columns = reader.boolean("columns", false);
  header.depth = static_cast<std::int32_t>(reader.integer("depth", 0, 0, 1));
  if (const Json* notes = reader.get("notes")) header.notes = *notes;
  reader.finish();
  return header;
}

}  // namespace

StepLog read_step_log(const std::string& path) {
  LineReader lines(path);
  std::string_view text;
  StepLog log;
  log.cut = true;
  if (!lines.next(text)) throw input_error(path + ":1", "the header of a step log", "an empty file");
  log.header = read_header(Json::parse_line(text, path, 1), path);
  // A line that cannot be parsed is the cut end of the log when nothing comes after it, and a fault
  // otherwise.
  std::optional<InputError> fault;
  while (lines.next(text)) {
    if (fault) throw *fault;
    const int number = static_cast<int>(lines.line());
    if (!log.cut)
      throw input_error(path + ":" + std::to_string(number), "nothing after the closing line", "a line");
    Json line;
    try {
      line = Json::parse_line(text, path, number);
    } catch (const InputError& error) {
      fault = error;
      continue;
    }
    read_event(line, path, log);
  }
  return log;
}

PlanDifference compare_plans(const std::vector<LoggedStep>& a, const std::vector<LoggedStep>& b) {
  PlanDifference difference;
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t s = 0; s < common; ++s) {
    if (a[s].plan_hash == b[s].plan_hash && a[s].new_tokens == b[s].new_tokens) {
      ++difference.compared;
      continue;
    }
    difference.equal = false;
    difference.text = "step " + std::to_string(s) + ": plan " + std::to_string(a[s].number) + " with " +
                      std::to_string(a[s].new_tokens) + " tokens, against plan " +
                      std::to_string(b[s].number) + " with " + std::to_string(b[s].new_tokens) + " tokens";
    return difference;
  }
  if (a.size() != b.size()) {
    difference.equal = false;
    difference.text = std::to_string(a.size()) + " steps against " + std::to_string(b.size());
  }
  return difference;
}

}  // namespace foretoken

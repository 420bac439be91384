#include "tests/support/part_laws.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/scenario.hpp"
#include "sim/scenario_document.hpp"
#include "sim/workload/workload.hpp"

namespace foretoken::laws {
namespace {

/// The value with the members of all its objects in a drawn order.
Json shuffled(Draw& draw, const Json& value) {
  if (value.is_array()) {
    Json::Array result;
    for (const Json& element : value.as_array()) result.push_back(shuffled(draw, element));
    return result;
  }
  if (!value.is_object()) return value;
  Json::Object members;
  for (const auto& [key, member] : value.as_object()) members.emplace_back(key, shuffled(draw, member));
  for (std::size_t i = members.size(); i > 1; --i)
    std::swap(members[i - 1],
              members[static_cast<std::size_t>(draw.between(0, static_cast<std::int64_t>(i) - 1))]);
  return members;
}

/// A file of the temporary folder that goes when it goes.
class PassingFile {
 public:
  PassingFile(const char* name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / (name + std::to_string(getpid()) + ".csv")) {
    std::ofstream(path_) << text;
  }
  PassingFile(const PassingFile&) = delete;
  ~PassingFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

void member_order_is_free(Draw& draw, const std::function<Json(const Json&)>& read) {
  const std::vector<std::string> names = shipped_scenarios();
  const ScenarioDocument document = read_document(
      names[static_cast<std::size_t>(draw.between(0, static_cast<std::int64_t>(names.size()) - 1))]);
  const auto resolved = [&](const Json& content) {
    return read ? read(content) : scenario_to_json(read_scenario(content, document.name, document.folder));
  };
  const std::string as_written = resolved(document.content).dump();
  const std::string reordered = resolved(shuffled(draw, document.content)).dump();
  LAW(as_written == reordered, "the order of members matters", as_written, reordered);
}

std::vector<TraceRow> rows_of_trace(const std::string& path) {
  WorkloadSpec spec;
  spec.arrivals.kind = ArrivalKind::trace;
  spec.trace.path = path;
  const auto source = make_source(spec);
  std::vector<TraceRow> rows;
  while (source->next_time() != kNever) {
    const Offer offer = source->pop();
    const Request& r = offer.request;
    LAW(static_cast<std::size_t>(r.id) == rows.size());
    rows.push_back(
        {r.arrival, r.prompt_tokens, offer.output_tokens, source->names().slo_classes[r.slo_class]});
  }
  return rows;
}

void split_trace_is_whole(Draw& draw,
                          const std::function<std::vector<TraceRow>(const std::string& path)>& read) {
  const std::string header = "arrival_s,input_tokens,output_tokens,slo_class\n";
  std::string whole = header, part = header;
  std::vector<std::string> parts;
  std::int64_t ns = draw.between(0, 100);
  const std::int32_t count = draw.requests(1, 30);
  for (std::int32_t i = 0; i < count; ++i) {
    ns += draw.chance(0.3) ? 0 : draw.between(1, 999'999'999);
    const std::string fraction = std::to_string(1'000'000'000 + ns % 1'000'000'000).substr(1);
    const std::string row = std::to_string(ns / 1'000'000'000) + "." + fraction + "," +
                            std::to_string(draw.between(1, 500)) + "," + std::to_string(draw.between(1, 90)) +
                            "," + draw.pick({"chat", "batch", "code"}) + "\n";
    if (part != header && draw.chance(0.2)) parts.push_back(std::exchange(part, header));
    whole += row;
    part += row;
  }
  parts.push_back(part);
  const std::vector<TraceRow> rows = read(PassingFile("foretoken-whole-", whole).path());
  std::size_t next = 0;
  for (const std::string& text : parts) {
    // Each file counts from its own first row.
    const std::size_t first = next;
    for (const TraceRow& row : read(PassingFile("foretoken-part-", text).path())) {
      LAW(next < rows.size(), "the parts have more rows than the whole");
      const TraceRow& same = rows[next++];
      LAW(row.arrival - Time{} == same.arrival - rows[first].arrival, next);
      LAW(row.prompt_tokens == same.prompt_tokens && row.output_tokens == same.output_tokens &&
              row.slo_class == same.slo_class,
          next);
    }
  }
  LAW(next == rows.size(), "the parts have fewer rows than the whole", next, rows.size());
}

}  // namespace foretoken::laws

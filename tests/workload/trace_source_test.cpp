#include "sim/workload/trace_source.hpp"

#include <algorithm>
#include <vector>

#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Detail::Approx;

namespace {

WorkloadSpec trace_of(const ScratchFile& file) {
  WorkloadSpec spec;
  spec.arrivals.kind = ArrivalKind::trace;
  spec.trace.path = file.path();
  return spec;
}

std::vector<Offer> drain(WorkloadSource& source) {
  std::vector<Offer> offers;
  while (source.next_time() != kNever) offers.push_back(source.pop());
  return offers;
}

Time at(double s) { return Time(Duration(static_cast<std::int64_t>(s * 1e12 + 0.5))); }

const std::string kRows =
    "arrival_s,input_tokens,output_tokens,max_new_tokens,slo_class\n"
    "100,10,5,,\n101.0000001,20,6,4,chat\n104,30,7,,chat\n110,40,8,,batch\n";

const std::string kSessions =
    R"({"id":"a","arrival_s":1,"input_tokens":10,"output_tokens":5,"prefix_hashes":[7],"block_tokens":16})"
    "\n"
    R"({"id":"a2","after":{"id":"a","delay_s":2},"input_tokens":20,"output_tokens":5,"prefix_hashes":[7,8],)"
    R"("block_tokens":16})"
    "\n"
    R"({"id":"b","arrival_s":5,"input_tokens":11,"output_tokens":5})"
    "\n"
    R"({"id":"a3","after":{"id":"a2","delay_s":0.5},"input_tokens":30,"output_tokens":5})"
    "\n"
    R"({"id":"a4","after":{"id":"a3","delay_s":0.5},"input_tokens":40,"output_tokens":5})"
    "\n";

}  // namespace

TEST_CASE("a trace is offered at its own times from its first row on, labels and bounds as it says",
          "[unit]") {
  const ScratchFile file("rows.csv", kRows);
  WorkloadSpec spec = trace_of(file);
  spec.max_new = MaxNewTokens::fixed;
  spec.max_new_tokens = 7;
  const auto source = make_source(spec);
  const auto offers = drain(*source);
  REQUIRE(offers.size() == 4);
  CHECK(offers[0].request.arrival == Time{});
  CHECK(offers[1].request.arrival == Time(Duration(1'000'000'100'000)));
  CHECK(offers[3].request.id == RequestId(3));
  CHECK(offers[0].request.max_new_tokens == 7);
  CHECK(offers[1].request.max_new_tokens == 4);
  CHECK(offers[1].output_tokens == 4);
  CHECK(offers[3].output_tokens == 7);
  CHECK(source->counts().outputs_truncated == 2);
  CHECK(source->names().slo_classes == std::vector<std::string>{"default", "chat", "batch"});
  CHECK(offers[2].request.slo_class == 1);
  CHECK(offers[3].request.slo_class == 2);
  CHECK(source->trace()->format == TraceFormat::csv);
}

TEST_CASE("scaling the rate scales every gap alike, so burstiness stays", "[property]") {
  const ScratchFile file("rows.csv", kRows);
  WorkloadSpec spec = trace_of(file);
  CHECK(offered_rate_per_s(spec) == Approx(0.4));
  spec.trace.rate_scale = 4;
  CHECK(offered_rate_per_s(spec) == Approx(1.6));
  for (const WorkloadSpec& fast : {spec, at_rate(trace_of(file), 1.6), at_rate(spec, 1.6)}) {
    const auto offers = drain(*make_source(fast));
    REQUIRE(offers.size() == 4);
    CHECK(offers[1].request.arrival == Time(Duration(250'000'025'000)));
    CHECK(offers[2].request.arrival == at(1));
    CHECK(offers[3].request.arrival == at(2.5));
  }
  spec.trace.rate_scale = 1;
  spec.trace.rate_per_s = 0.8;
  CHECK(drain(*make_source(spec))[3].request.arrival == at(5));
}

TEST_CASE("a window is cut on the trace's clock and moved to time 0", "[unit]") {
  const ScratchFile file("rows.csv", kRows);
  WorkloadSpec spec = trace_of(file);
  spec.trace.from = std::chrono::seconds(1);
  spec.trace.to = std::chrono::seconds(10);
  const auto source = make_source(spec);
  const auto offers = drain(*source);
  REQUIRE(offers.size() == 2);
  CHECK(offers[0].request.arrival == Time(Duration(100'000)));
  CHECK(offers[1].request.arrival == at(3));
  CHECK(source->counts().outside_window == 2);

  WorkloadSpec some = trace_of(file);
  some.requests = 3;
  CHECK(drain(*make_source(some)).size() == 3);
  some.requests = 0;
  some.duration = std::chrono::seconds(4);
  CHECK(drain(*make_source(some)).size() == 2);
}

TEST_CASE("rows without a class are labelled by the mix, the others keep theirs", "[unit]") {
  const ScratchFile file("rows.csv", kRows);
  WorkloadSpec spec = trace_of(file);
  ClassSpec entry;
  entry.name = "mixed";
  entry.priority = 3;
  spec.classes.push_back(entry);
  const auto source = make_source(spec);
  const auto offers = drain(*source);
  CHECK(source->names().slo_classes[offers[0].request.slo_class] == "mixed");
  CHECK(offers[0].request.priority == 3);
  CHECK(source->names().slo_classes[offers[1].request.slo_class] == "chat");
  CHECK(offers[1].request.priority == 0);
}

TEST_CASE("a later turn arrives its delay after the turn before ended", "[unit]") {
  const ScratchFile file("sessions.jsonl", kSessions);
  const auto source = make_source(trace_of(file));
  CHECK(source->next_time() == at(1));
  const Offer a = source->pop();
  CHECK(a.request.prefix_hashes.size() == 1);
  CHECK(a.request.prefix_hashes[0] == 7);
  CHECK(source->next_time() == at(5));
  source->on_end(a.request.id, at(2), Ending::finished);
  CHECK(source->next_time() == at(4));
  const Offer a2 = source->pop();
  CHECK(a2.request.prompt_tokens == 20);
  CHECK(a2.request.prefix_hashes.size() == 2);
  CHECK(a2.request.arrival == at(4));
  CHECK(source->pop().request.prompt_tokens == 11);
  CHECK(source->next_time() == kNever);
  source->on_end(a2.request.id, at(6), Ending::finished);
  CHECK(source->next_time() == at(6.5));
  const Offer a3 = source->pop();
  CHECK(a3.request.id == RequestId(3));
  source->on_end(a3.request.id, at(7), Ending::cancelled);
  CHECK(source->next_time() == kNever);
  CHECK(source->counts().turns_abandoned == 1);
  CHECK(source->counts().offered == 4);
}

TEST_CASE("all turns behind a refused one are abandoned and counted", "[unit]") {
  const ScratchFile file("sessions.jsonl", kSessions);
  const auto source = make_source(trace_of(file));
  const Offer a = source->pop();
  source->on_end(a.request.id, at(1), Ending::rejected);
  CHECK(source->counts().turns_abandoned == 3);
  const auto found = source->warnings();
  CHECK(std::count(found.begin(), found.end(), WorkloadWarning::turns_abandoned) == 1);
}

TEST_CASE("a turn that waits for nobody known, or an id that comes twice, is refused with its line",
          "[unit]") {
  const std::string row = R"({"id":"a","arrival_s":1,"input_tokens":10,"output_tokens":5})"
                          "\n";
  const std::string later = R"({"id":"c","after":{"id":"a","delay_s":2},"input_tokens":20,"output_tokens":5})"
                            "\n";
  const auto fault = [](const std::string& text) {
    const ScratchFile file("bad.jsonl", text);
    const std::string found = error_of([&] { make_source(trace_of(file)); });
    return found.substr(found.find("bad.jsonl") == std::string::npos ? 0 : found.find("bad.jsonl"));
  };
  CHECK(
      fault(later + row).find("bad.jsonl:1: /after/id: expected the id of an earlier request, found \"a\"") ==
      0);
  CHECK(fault(row + later + row).find("bad.jsonl:3: /id: expected distinct ids") == 0);
  CHECK(fault(row + later) == "no error");
}

TEST_CASE("a log longer than engine time is refused unless it is cut or sped up", "[unit]") {
  const ScratchFile file("long.csv",
                         "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                         "0,m,1,1,2,x\n10454400,m,1,1,2,x\n");
  WorkloadSpec spec = trace_of(file);
  CHECK(error_of([&] { drain(*make_source(spec)); }).find("long.csv:3: expected arrivals within 104 days") !=
        std::string::npos);
  spec.trace.rate_scale = 10;
  CHECK(drain(*make_source(spec))[1].request.arrival == at(1'045'440));
  spec.trace.rate_scale = 1;
  spec.trace.from = std::chrono::hours(24 * 100);
  CHECK(drain(*make_source(spec)).size() == 1);
}

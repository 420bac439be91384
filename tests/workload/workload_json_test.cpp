#include "sim/workload/workload_json.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/workload/helpers.hpp"

using namespace foretoken;
using namespace foretoken::test;
using Catch::Detail::Approx;

namespace {

WorkloadSpec read(const std::string& text) {
  const Json json = Json::parse(text, "w.json");
  JsonReader reader(json, "w.json");
  return read_workload(reader);
}

std::string fault(const std::string& text) {
  return error_of([&] { read(text); });
}

const std::string kLengths = R"("prompt_tokens": 100, "output_tokens": {"kind": "fixed", "tokens": 0})";

}  // namespace

TEST_CASE("every kind of work reads, and its resolved form reads back as the same", "[property]") {
  const std::string lengths = R"(, )" + kLengths + "}";
  for (const std::string& text : std::vector<std::string>{
           R"({"arrivals": {"kind": "poisson", "rate_per_s": 4}, "seed": 9, "requests": 20, "duration": "2m",
               "tokens_max": 900,
               "over_long": "drop", "max_new_tokens": 64, "prediction_sigma": 0.5)" +
               lengths,
           R"({"arrivals": {"kind": "gamma", "rate_per_s": 4, "cv": 2.5}, "max_new_tokens": "exact")" +
               lengths,
           R"({"arrivals": {"kind": "on_off", "on_rate_per_s": 9, "on": "90 s", "off_ms": 1500})" + lengths,
           R"({"arrivals": {"kind": "closed_loop", "concurrency": 8, "think_s": 0.1,
               "think_kind": "exponential", "ramp_s": 3})" +
               lengths,
           R"({"arrivals": {"kind": "poisson", "rate_per_s": 4}, "classes": [
               {"name": "a", "weight": 2, "tenant": "t", "source": "s", "priority": -1, "patience_s": 3,
                "cancel_after": "1m",
                "prompt_tokens": {"kind": "log_normal", "mean": 100, "p99": 600, "max": 700},
                "output_tokens": {"kind": "uniform", "min": 1, "max": 9},
                "prefix": {"share": 0.5, "groups": 2, "tokens": 64, "block_tokens": 32}},
               {"name": "b", "lengths_from": "x.csv"}]})",
           R"({"trace": {"path": "t.csv", "format": "csv", "columns": {"arrival_s": "when"}, "sort": true,
               "spread_ties": "uniform",
               "zero_output": "keep", "from_s": 1, "to_s": 3600.5, "rate_scale": 2, "rate_per_s": 3},
               "classes": [{"name": "a"}]})",
           R"({"trace": {"path": "t.csv"}})"}) {
    INFO(text);
    const Json once = to_json(read(text));
    CHECK(to_json(read(once.dump())) == once);
    CHECK(read(once.dump()).arrivals.on == read(text).arrivals.on);
    CHECK(read(once.dump()).trace.to == read(text).trace.to);
  }
  const WorkloadSpec spec =
      read(R"({"arrivals": {"kind": "closed_loop", "concurrency": 8, "think_s": 0.1})" + lengths);
  CHECK(spec.arrivals.think == std::chrono::milliseconds(100));
  REQUIRE(spec.classes.size() == 1);
  CHECK(spec.classes[0].prompt_tokens.min == 100);
  CHECK(spec.classes[0].output_tokens.min == 0);
}

TEST_CASE("faults in a workload name the member", "[unit]") {
  const std::string poisson = R"({"arrivals": {"kind": "poisson", "rate_per_s": 4}, )";
  CHECK(fault("{}") == "w.json:1: expected either \"trace\" or \"arrivals\", found neither");
  CHECK(fault(poisson + kLengths + R"(, "seeed": 1})").find("w.json:1: /seeed: expected a known key") == 0);
  CHECK(fault(R"({"arrivals": {"kind": "poison", "rate_per_s": 4}})").find("(did you mean \"poisson\"?)") !=
        std::string::npos);
  CHECK(fault(R"({"arrivals": {"kind": "poisson", "rate_per_s": 0}, )" + kLengths + "}")
            .find("w.json:1: /arrivals/rate_per_s") == 0);
  CHECK(fault(R"({"arrivals": {"kind": "poisson", "rate": 1}, )" + kLengths + "}")
            .find("w.json:1: /arrivals") == 0);
  CHECK(fault(poisson + R"("prompt_tokens": 5})").find("w.json:1: expected a member \"output_tokens\"") == 0);
  CHECK(fault(poisson + R"("prompt_tokens": 0, "output_tokens": 1})").find("w.json:1: /prompt_tokens") == 0);
  CHECK(fault(poisson + kLengths + R"(, "duration": 5})")
            .find("w.json:1: /duration: expected a duration as text") == 0);
  CHECK(fault(poisson + kLengths + R"(, "duration": "5 s", "duration_s": 5})")
            .find("w.json:1: /duration_s: expected one of") == 0);
  CHECK(fault(poisson + R"("classes": [{"name": "a", "prompt_tokens": 5, "output_tokens": 5, "wieght": 1}]})")
            .find("w.json:1: /classes/0/wieght: expected a known key") == 0);
  CHECK(fault(poisson +
              R"("prompt_tokens": {"kind": "log_normal", "mean": 100, "p50": 200}, "output_tokens": 1})")
            .find("w.json:1: /prompt_tokens: expected two facts that a log-normal distribution has") == 0);
  CHECK(fault(R"({"trace": {"path": "x", "from_s": 5, "to_s": 5}})")
            .find("w.json:1: /trace: expected a window") == 0);
}

TEST_CASE("paths in a workload file are relative to it", "[unit]") {
  const ScratchFile file("workload.json", R"({"trace": {"path": "sub/t.csv"}} // comments are welcome)");
  const auto folder = std::filesystem::path(file.path()).parent_path();
  CHECK(read_workload_file(file.path()).trace.path == (folder / "sub/t.csv").string());
}

#include "sim/scenario.hpp"

#include <functional>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/scenario_document.hpp"
#include "tests/catch.hpp"

namespace foretoken {
namespace {

const std::string kMinimal = R"({
  "cost": {"affine": {"step_us": 1000}},
  "engine": {"preset": "vllm-v1", "max_model_len": 4096, "num_gpu_blocks_override": 1000},
  "workload": {"arrivals": {"kind": "poisson", "rate_per_s": 1}, "prompt_tokens": 10,
               "output_tokens": 5, "requests": 10}
})";

ScenarioDocument minimal() { return {"test.json", "", Json::parse(kMinimal, "test.json", true)}; }

Scenario with(const std::vector<std::string>& changes) {
  std::vector<Override> overrides;
  for (const std::string& text : changes) overrides.push_back(parse_override(text));
  return resolve(minimal(), overrides);
}

std::string fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  } catch (const InfeasibleError& error) {
    return error.what();
  }
  return "";
}

/// Keys that a reader knows at a place: those it lists when it meets one it cannot know.
void require_unknown_key_is_refused(const std::string& path) {
  const std::string fault = fault_of([&] { with({path + ".zzzzqqqqzzzz=1"}); });
  INFO(path << ": " << fault);
  CHECK(fault.find("the unknown key \"zzzzqqqqzzzz\"") != std::string::npos);
}

void collect_paths(const Json& value, const std::string& path, std::vector<std::string>& paths) {
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.as_object()) {
    paths.push_back(path + "/" + key);
    collect_paths(member, path + "/" + key, paths);
  }
}

/// The schema at a path of a document, or null.
const Json* schema_at(const Json& root, const Json& schema, const std::string& path,
                      const std::string& preset) {
  const Json* at = &schema;
  std::size_t begin = 1;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string key = path.substr(begin, end - begin);
    if (const Json* variants = at->find("oneOf")) {
      const Json* found = nullptr;
      for (const Json& variant : variants->as_array())
        if (variant.find("properties")->find("preset")->find("const")->as_string() == preset)
          found = &variant;
      if (found == nullptr) return nullptr;
      at = found;
    }
    const Json* properties = at->find("properties");
    at = properties == nullptr ? nullptr : properties->find(key);
    if (at == nullptr) return nullptr;
    if (at->find("$ref") != nullptr) at = root.find("$defs")->find("sched");
    begin = end + 1;
  }
  return at;
}

}  // namespace

TEST_CASE("a scenario resolves, and its resolved form reads back as the same", "[unit]") {
  for (const char* preset : {"static", "orca", "vllm-v0", "vllm-v1", "sarathi"}) {
    INFO(preset);
    const Json written = scenario_to_json(with({std::string("engine.preset=") + preset}));
    CHECK(scenario_to_json(read_scenario(written, "written", "")) == written);
  }
}

TEST_CASE("every shipped scenario resolves and is described", "[unit]") {
  REQUIRE(shipped_scenarios().size() >= 6);
  for (const std::string& name : shipped_scenarios()) {
    INFO(name);
    const Scenario scenario = resolve(read_document(name), {});
    CHECK(scenario.name == name);
    CHECK(scenario.description.size() > 20);
    CHECK(scenario.capacity.kv_blocks > 0);
    const Json written = scenario_to_json(scenario);
    CHECK(scenario_to_json(read_scenario(written, "written", "")) == written);
  }
}

TEST_CASE("the published schema is the one that the reader's rows make", "[unit]") {
  const std::string published =
      read_file(std::string(FORETOKEN_SOURCE_DIR) + "/scenarios/schema/scenario.schema.json");
  CHECK(published == scenario_schema().dump(2) + "\n");
}

TEST_CASE("every key of a resolved scenario is in the schema", "[unit]") {
  const Json schema = scenario_schema();
  for (const std::string& name : shipped_scenarios()) {
    const Scenario scenario = resolve(read_document(name), {});
    std::vector<std::string> paths;
    collect_paths(scenario_to_json(scenario), "", paths);
    for (const std::string& path : paths) {
      if (path.find("/classes") != std::string::npos) continue;
      INFO(name << " " << path);
      CHECK(schema_at(schema, schema, path, std::string(scenario.engine.preset->name)) != nullptr);
    }
  }
}

TEST_CASE("every key of the schema's own sections is read", "[unit]") {
  for (const char* section : {"", "deployment", "memory", "metrics"}) {
    for (const Field& field : scenario_fields(section)) {
      const std::string path = std::string(section).empty()
                                   ? std::string(field.name)
                                   : std::string(section) + "." + std::string(field.name);
      INFO(path);
      // A value of a wrong type is refused at that very place, so the key is known.
      const std::string fault = fault_of([&] {
        with({"/" + std::string(section) + (*section == '\0' ? "" : "/") + std::string(field.name) + "=[]"});
      });
      CHECK(fault.find("unknown key") == std::string::npos);
      CHECK(fault.find(std::string(field.name)) != std::string::npos);
    }
  }
}

TEST_CASE("an unknown key is refused everywhere, with a suggestion where one is near", "[unit]") {
  for (const char* path : {"deployment", "cost", "cost.affine", "engine", "engine.sched", "memory", "metrics",
                           "workload", "workload.arrivals"})
    require_unknown_key_is_refused(path);
  CHECK(fault_of([] { with({"sede=1"}); }).find("did you mean \"seed\"?") != std::string::npos);
}

TEST_CASE("a fault names file, line and pointer, and the override it came from", "[unit]") {
  const Json document = Json::parse("{\n\"workload\": {},\n\"replicates\": 0}", "bad.json", true);
  CHECK(fault_of([&] { read_scenario(document, "bad.json", ""); }) ==
        "bad.json:3: /replicates: expected an integer in [1, 1000], found 0");
  CHECK(fault_of([] { with({"engine.block_size=0"}); }).find("(from --set engine.block_size=0)") !=
        std::string::npos);
}

TEST_CASE("overrides take dotted paths and pointers, JSON and text, and later ones win", "[unit]") {
  CHECK(with({"engine.max_num_seqs=7"}).policy().sequences_max == 7);
  CHECK(with({"/engine/max_num_seqs=7", "engine.max_num_seqs=9"}).policy().sequences_max == 9);
  CHECK(with({"name=some text"}).name == "some text");
  CHECK(with({"slo=[\"ttft.p99<1s\"]"}).slo.size() == 1);
  CHECK_THROWS_AS(parse_override("engine"), UsageError);
  CHECK_THROWS_AS(with({"cost.affine.step_us.deeper=1"}), UsageError);
}

TEST_CASE("the environment overrides sections it knows and leaves other variables alone", "[unit]") {
  const auto overrides = environment_overrides(
      {"PATH=/bin", "FORETOKEN_ISA=avx2", "FORETOKEN_ENGINE__MAX_NUM_SEQS=5", "FORETOKEN_SEED=3"});
  REQUIRE(overrides.size() == 2);
  const Scenario scenario = resolve(minimal(), overrides);
  CHECK(scenario.policy().sequences_max == 5);
  CHECK(scenario.seed == 3);
  CHECK(scenario.workload.seed == 3);
}

TEST_CASE("a system without a stated or derived memory, cost or context is refused", "[unit]") {
  CHECK(fault_of([] { with({"engine={\"max_model_len\": 100}"}); }).find("/memory/kv_blocks") !=
        std::string::npos);
  CHECK(fault_of([] { with({"cost={}"}); }).find("/cost") != std::string::npos);
  CHECK(fault_of([] { with({"engine={\"num_gpu_blocks_override\": 9}"}); }).find("max_model_len") !=
        std::string::npos);
  CHECK(fault_of([] {
          with({"engine.preset=orca", "memory.kv_blocks=10"});
        }).find("lower max_model_len") != std::string::npos);
  CHECK(fault_of([] { with({"workload.seed=4"}); }).find("top level") != std::string::npos);
  CHECK(fault_of([] { with({"model=lama-3.1-8b"}); }).find("did you mean \"llama-3.1-8b\"?") !=
        std::string::npos);
}

TEST_CASE("memory follows from model, device and utilisation", "[unit]") {
  const Scenario large = resolve(read_document("chat-8b-h100"), {});
  const Scenario small =
      resolve(read_document("chat-8b-h100"), {parse_override("engine.gpu_memory_utilization=0.5")});
  CHECK(large.capacity.kv_blocks > 2 * small.capacity.kv_blocks);
  CHECK_THROWS_AS(
      resolve(read_document("chat-8b-h100"), {parse_override("engine.gpu_memory_utilization=0.1")}),
      InfeasibleError);
}

}  // namespace foretoken

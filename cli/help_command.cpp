#include "cli/help_command.hpp"

#include <memory>

#include "cli/output.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/metrics/metric.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kExitCodes =
    R"(Exit codes
    0  done, and every threshold holds
    1  a finding: a threshold failed, or plans differ
    2  the command line is wrong, or FORETOKEN_ISA
    3  an input file is wrong; file, line and JSON pointer are in the message
    4  the simulated system cannot exist: the model does not fit, nothing can ever be admitted, or
       no rate is served
    5  an internal error: please report it
    6  a device or the operating system refused: memory, a full disk, no GPU
  130  Ctrl-C or SIGTERM; what was done until then is printed
)";

constexpr std::string_view kThresholds =
    R"(Thresholds
  --slo '[class:]metric.statistic<duration'  --slo 'ttft.p99<500ms'  --slo 'realtime:ttft.p99<1s'
  --slo '[class:]goodput>share'              --slo 'goodput>0.99'

  metric     ttft, tpot, ntpot, e2e, queue_time, preempted_time, stall_max, gap
             (foretoken help metrics)
  statistic  mean, max, or any percentile between p0 and p100: p50, p99.9, p12
  duration   a number with its unit: ps, ns, us, ms, s, m, h

An upper limit on anything but the pooled gap also binds each single request of its class:
goodput is the share of the offered requests that finished within all of them. The exit code is 1
when a threshold fails.
)";

constexpr std::string_view kScenarios =
    R"(Scenarios
A scenario is one JSON file with everything a run needs; comments are allowed, unknown keys refused.

  {
    "model": "llama-3.1-8b",            a shipped model, or a path to a Hugging Face config.json
    "device": "h100-sxm",               a shipped device, or a path to a sheet
    "cost": {"roofline": {}},           or {"profile": FILE}, or {"affine": {"step_us": 6000, ...}}
    "engine": {"preset": "vllm-v1",     original parameters: foretoken presets show vllm-v1
               "max_num_seqs": 128,
               "sched": {"depth": 0}},  our own names, which have the last word
    "workload": {...},                  what arrives
    "slo": ["ttft.p99<500ms"]
  }

  foretoken config list       scenarios that ship with the program; run one by its name
  foretoken config show NAME  the resolved scenario, every default in its place
  foretoken config schema     JSON Schema, for editors

Overrides: --set engine.max_num_seqs=64, or --set /engine/max_num_seqs=64. Flags win over the
environment, the environment over the file, the file over defaults. Paths in a file are relative
to it.
)";

constexpr std::string_view kEnvironment =
    R"(Environment
  FORETOKEN_SEED=7                    a value of the scenario: upper case, two underscores between
  FORETOKEN_ENGINE__MAX_NUM_SEQS=64   levels; the same as --set engine.max_num_seqs=64
  FORETOKEN_ISA=avx2                  other kernels: portable, avx2, avx512, avx512_bf16
  NO_COLOR, CLICOLOR_FORCE, TERM      colours, where --color is auto
)";

constexpr std::string_view kOutput =
    R"(Output
  stdout has the result and nothing else; stderr has progress (on a terminal, or with -v), remarks
  and warnings.
  -o table|md|csv|json         form of what goes to stdout; --json is -o json
  -O FILE                      a copy in the form of its extension: .txt, .md, .csv, .json, each
                               with .gz too; may repeat
  Tables have at most 100 columns. JSON is one document with schema_version, tool_version, config,
  seed and inputs; nothing in it depends on the machine or the time of day, so that two runs give
  equal bytes. A file appears whole or not at all; until then NAME.tmp-... grows beside it.
)";

struct Topic {
  std::string_view name;
  std::string_view about;
  std::string_view text;
};

constexpr Topic kTopics[] = {
    {"metrics", "what is measured, and what other tools call it", ""},
    {"exit-codes", "what the program returns", kExitCodes},
    {"thresholds", "how --slo is written", kThresholds},
    {"scenarios", "what a scenario file holds, and how values are overridden", kScenarios},
    {"environment", "variables that the program reads", kEnvironment},
    {"output", "what goes where, in which form", kOutput},
};

std::string topic_list() {
  std::string text = "Topics\n";
  for (const Topic& topic : kTopics) {
    std::string name(topic.name);
    name.resize(16, ' ');
    text += "  " + name + std::string(topic.about) + "\n";
  }
  return text + "\nforetoken COMMAND --help shows a command, beginning with examples.\n";
}

std::string topic_text(const std::string& name) {
  if (name.empty() || name == "topics") return topic_list();
  if (name == "metrics") return metric_definitions();
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) {
    if (topic.name == name) return std::string(topic.text);
    names.emplace_back(topic.name);
  }
  const std::string near = nearest(name, names);
  throw UsageError("help: expected a topic (foretoken help topics), found \"" + name + "\"" +
                   (near.empty() ? "" : " (did you mean \"" + near + "\"?)"));
}

}  // namespace

CommandSpec help_command() {
  auto topic = std::make_shared<std::string>();
  CommandSpec command{"help",
                      "Topics: metrics, exit codes, thresholds, scenarios, environment, output",
                      {{"foretoken help topics"}, {"foretoken help metrics"}, {"foretoken help exit-codes"}},
                      {{"topic", topic.get(), "TOPIC", "What to explain"}},
                      {},
                      {}};
  command.run = [topic] {
    print_result(topic_text(*topic));
    return kExitOk;
  };
  return command;
}

}  // namespace foretoken

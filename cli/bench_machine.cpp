#include "cli/bench_machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "backend/cpu/bench_step.hpp"
#include "backend/cpu/limits.hpp"
#include "backend/cpu/memory_needs.hpp"
#include "backend/cpu/runtime.hpp"
#include "backend/cpu/weights.hpp"
#include "cli/bench_command.hpp"
#include "cli/output.hpp"
#include "cli/text_table.hpp"
#include "kernels/bench/products.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/resources.hpp"
#include "sim/base/text.hpp"
#include "sim/base/version.hpp"

namespace foretoken {
namespace {

constexpr std::string_view kForms = "table|md|csv|json";
constexpr double kGiga = 1e9;

struct Options {
  CommonOptions common;
  OutputOptions output;
  std::string model = "m100";
  std::string type = "bf16";
  std::int64_t threads = 0;
  std::int64_t seed = 1;
  double seconds = 0;  ///< 0: as long as the command takes by itself.
};

std::string_view type_name(ElementType type) { return type == ElementType::bf16 ? "bf16" : "f32"; }

ElementType type_named(const std::string& name) {
  if (name == "bf16") return ElementType::bf16;
  if (name == "f32") return ElementType::f32;
  throw UsageError("--type: expected bf16 or f32, found \"" + name + "\"");
}

int threads_of(const Options& options) {
  return options.threads > 0 ? static_cast<int>(options.threads) : usable_processors();
}

std::string size_text(std::size_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024.0;
  return kib < 1024 ? short_number(kib) + " KiB" : short_number(kib / 1024.0) + " MiB";
}

std::string percent(double share) { return short_number(100 * share); }

Json header(std::string_view command) {
  return Json::object({{"schema_version", 1}, {"tool_version", build_info().version}, {"command", command}});
}

std::string dump(const Json& json) { return json.dump(2) + "\n"; }

void add_machine_options(CommandSpec& command, Options& options) {
  command.options.push_back(
      {"--threads", &options.threads, "COUNT", "Threads; 0: all processors", false, kThreads});
  command.options.push_back(
      {"--seconds", &options.seconds, "SECONDS", "Time to measure for, about", false, kSeconds});
  add_output(command, options.output);
  add_common(command, options.common);
}

std::string machine_text(const bench::MachineLimits& limits, std::string_view form) {
  if (form == "json") {
    Json document = header("bench machine");
    Json read = Json::array();
    for (const bench::BandwidthPoint& point : limits.read)
      read.push_back(Json::object({{"working_set_bytes", static_cast<std::int64_t>(point.bytes)},
                                   {"threads", point.threads},
                                   {"bandwidth_bytes_per_s", point.bytes_per_s}}));
    Json copy = Json::array();
    for (const bench::BandwidthPoint& point : limits.copy)
      copy.push_back(Json::object({{"bytes", static_cast<std::int64_t>(point.bytes)},
                                   {"threads", point.threads},
                                   {"bytes_per_s", point.bytes_per_s}}));
    Json peaks = Json::array();
    for (const bench::PeakPoint& point : limits.peaks)
      peaks.push_back(Json::object({{"isa", cpu::isa_name(point.isa)},
                                    {"type", type_name(point.stored)},
                                    {"threads", point.threads},
                                    {"flops_per_s", point.flops_per_s}}));
    document.set("read", read);
    document.set("copy", copy);
    document.set("peaks", peaks);
    return dump(document);
  }
  TextTable table({{"limit"}, {"threads", true}, {"value", true}, {"unit"}});
  for (const bench::BandwidthPoint& point : limits.read)
    table.add({"read " + size_text(point.bytes), std::to_string(point.threads),
               short_number(point.bytes_per_s / kGiga), "GB/s"});
  for (const bench::BandwidthPoint& point : limits.copy)
    table.add({"copy " + size_text(point.bytes), std::to_string(point.threads),
               short_number(point.bytes_per_s / kGiga), "GB/s copied"});
  for (const bench::PeakPoint& point : limits.peaks)
    table.add({"peak " + std::string(cpu::isa_name(point.isa)) + " " + std::string(type_name(point.stored)),
               std::to_string(point.threads), short_number(point.flops_per_s / kGiga), "GFLOP/s"});
  return table.render(form, table_columns());
}

bench::TransformerShape products_shape(const ModelShape& shape) {
  return {shape.hidden, shape.layers, shape.heads, shape.kv_heads, shape.head_dim, shape.ffn, shape.vocab};
}

std::string kernels_text(const Options& options, const std::vector<bench::ProductPoint>& points,
                         std::string_view form) {
  if (form == "json") {
    Json document = header("bench kernels");
    document.set("model", options.model);
    document.set("type", options.type);
    Json list = Json::array();
    for (const bench::ProductPoint& point : points)
      list.push_back(Json::object({{"batch", point.rows},
                                   {"seconds", point.seconds},
                                   {"weight_bytes_per_s", point.weight_bytes_per_s},
                                   {"flops_per_s", point.flops_per_s},
                                   {"floor_seconds", point.floor_seconds},
                                   {"share_of_floor", point.share_of_floor}}));
    document.set("points", list);
    return dump(document);
  }
  TextTable table({{"batch", true},
                   {"time (ms)", true},
                   {"weights (GB/s)", true},
                   {"GFLOP/s", true},
                   {"floor (ms)", true},
                   {"of floor (%)", true}});
  for (const bench::ProductPoint& point : points)
    table.add({std::to_string(point.rows), short_number(1e3 * point.seconds),
               short_number(point.weight_bytes_per_s / kGiga), short_number(point.flops_per_s / kGiga),
               short_number(1e3 * point.floor_seconds), percent(point.share_of_floor)});
  return table.render(form, table_columns());
}

/// What the figures of a point are made of.
Json step_fields() {
  return Json::object(
      {{"tokens_per_second", "new tokens of the step over step_p10_ps, the 10th percentile of its times"},
       {"share_of_products", "products_p10_ps over step_p10_ps"},
       {"share_of_floor", "floor_ps, the least time that the machine's limits allow, over step_p10_ps"}});
}

std::string step_text(const Options& options, const std::vector<BenchPoint>& points, std::string_view form) {
  if (form == "json") {
    Json document = header("bench step");
    document.set("model", options.model);
    document.set("type", options.type);
    document.set("fields", step_fields());
    Json list = Json::array();
    for (const BenchPoint& point : points)
      list.push_back(Json::object({{"phase", point.phase},
                                   {"batch", point.batch},
                                   {"context", point.context},
                                   {"tokens_per_second", point.tokens_per_second},
                                   {"share_of_products", point.share_of_products},
                                   {"share_of_floor", point.share_of_floor},
                                   {"step_p10_ps", point.step_p10_ps},
                                   {"step_median_ps", point.step_median_ps},
                                   {"products_p10_ps", point.products_p10_ps},
                                   {"products_median_ps", point.products_median_ps},
                                   {"floor_ps", point.floor_ps},
                                   {"steps", point.steps}}));
    document.set("points", list);
    return dump(document);
  }
  TextTable table({{"phase"},
                   {"batch", true},
                   {"context", true},
                   {"tokens/s", true},
                   {"step (ms)", true},
                   {"products (ms)", true},
                   {"of products (%)", true},
                   {"of floor (%)", true}});
  for (const BenchPoint& point : points)
    table.add({point.phase, std::to_string(point.batch), std::to_string(point.context),
               short_number(point.tokens_per_second),
               short_number(1e-9 * static_cast<double>(point.step_p10_ps)),
               short_number(1e-9 * static_cast<double>(point.products_p10_ps)),
               percent(point.share_of_products), percent(point.share_of_floor)});
  return table.render(form, table_columns());
}

int run_kernels(const Options& options) {
  check_output(options.output, kForms);
  check_isa();
  const ElementType type = type_named(options.type);
  const ModelShape shape = model_named(options.model);
  check_memory({{"weights", static_cast<double>(weight_bytes(shape, type))}});
  Log log(options.common);
  log.progress("timing products of " + options.model);
  cpu::ThreadPool pool(threads_of(options));
  bench::ProductSet set(bench::step_products(products_shape(shape)), type, 512, cpu::active_isa());
  const auto points = bench::measure_products(pool, set, {1, 2, 4, 8, 16, 32, 64, 128, 512},
                                              options.seconds > 0 ? options.seconds : 20.0);
  deliver(options.output, [&](std::string_view form) { return kernels_text(options, points, form); });
  return kExitOk;
}

int run_step(const Options& options) {
  check_output(options.output, kForms);
  check_isa();
  BenchStepOptions how;
  how.type = type_named(options.type);
  how.seed = static_cast<std::uint64_t>(options.seed);
  const ModelShape shape = model_named(options.model);
  check_memory(weights_memory(shape, how.type));
  const int threads = threads_of(options);
  const double total = options.seconds > 0 ? options.seconds : 16.0;
  const std::vector<BenchCase> cases = standard_bench_cases();
  how.seconds_per_case = total / static_cast<double>(cases.size());
  Log log(options.common);
  Runtime<Cpu> runtime(threads);
  const auto points = bench_steps(shape, runtime, cases, how, [&](std::string_view text) {
    log.progress("timing " + std::string(text));
  });
  deliver(options.output, [&](std::string_view form) { return step_text(options, points, form); });
  return kExitOk;
}

}  // namespace

void check_isa() {
  const char* wish = std::getenv("FORETOKEN_ISA");
  if (wish == nullptr || *wish == '\0') return;
  const std::optional<cpu::Isa> isa = cpu::isa_from_name(wish);
  if (isa && cpu::is_available(*isa)) return;
  std::string known;
  for (const cpu::Isa one : cpu::available_isas())
    known.append(known.empty() ? "" : ", ").append(cpu::isa_name(one));
  throw UsageError("FORETOKEN_ISA: expected one of " + known + ", found \"" + wish + "\"" +
                   (isa ? ", which this processor has not" : ""));
}

ModelShape model_named(const std::string& name) {
  const std::string shipped = "models/data/" + name + ".json";
  if (const auto text = resource(shipped))
    return shape_from_hf(Json::parse(*text, shipped, true), shipped, name);
  return find_shape(name, "");
}

CommandSpec bench_machine_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{
      "machine",
      "Bandwidth by working set, and arithmetic peaks by instruction set",
      {{"foretoken bench machine", true}, {"foretoken bench machine --threads 1 --json", true}},
      {},
      {},
      {}};
  add_machine_options(command, *options);
  command.run = [options] {
    check_output(options->output, kForms);
    check_isa();
    check_memory({{"what is read and copied", static_cast<double>(bench::kLimitsBytes)}});
    Log log(options->common);
    log.progress("measuring the machine's limits");
    const bench::MachineLimits limits =
        bench::measure_limits(threads_of(*options), options->seconds > 0 ? options->seconds : 8.0);
    deliver(options->output, [&](std::string_view form) { return machine_text(limits, form); });
    return kExitOk;
  };
  return command;
}

CommandSpec bench_kernels_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{
      "kernels",
      "Matrix products of one step by batch, beside their floor",
      {{"foretoken bench kernels --model m100", true}, {"foretoken bench kernels --type f32", true}},
      {{"--model", &options->model, "MODEL", "A shipped model, or a path to a config.json"},
       {"--type", &options->type, "TYPE", "bf16 or f32"}},
      {},
      {}};
  add_machine_options(command, *options);
  command.run = [options] { return run_kernels(*options); };
  return command;
}

CommandSpec bench_step_spec() {
  auto options = std::make_shared<Options>();
  CommandSpec command{"step",
                      "Whole steps beside their products alone and beside the hardware floor. Tokens/s, "
                      "times and shares are from the 10th percentile of a step's times, which is what it "
                      "takes when nothing disturbs it; the JSON has the median as well.",
                      {{"foretoken bench step --model m100", true}, {"foretoken bench step --json", true}},
                      {{"--model", &options->model, "MODEL", "A shipped model, or a path to a config.json"},
                       {"--type", &options->type, "TYPE", "bf16 or f32"},
                       {"--seed", &options->seed, "NUMBER", "Seed of the weights", false, kSeeds}},
                      {},
                      {}};
  add_machine_options(command, *options);
  command.run = [options] { return run_step(*options); };
  return command;
}

}  // namespace foretoken

#include "sim/metrics/step_log.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "sim/metrics/plan_hash.hpp"
#include "tests/catch.hpp"
#include "tests/metrics/fake_run.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("foretoken_" + name + ".jsonl")).string();
}

}  // namespace

TEST_CASE("a step log reads back as it was written") {
  const std::string path = temporary("step_log");
  StepLogHeader header;
  header.config_hash = "abc";
  header.columns = true;
  header.depth = 1;
  {
    StepLogWriter writer(path, header);
    FakeRun(7, {}).run(writer);
    Offer offer;
    const std::vector<std::uint64_t> hashes{1, 0xffffffffffffffffu};
    offer.request.prefix_hashes = hashes;
    offer.request.hash_block_tokens = 16;
    offer.patience = Duration(5);
    writer.on_reject(offer, Refusal::never_fits, Time(Duration(99)));
    writer.close();
  }
  const StepLog log = read_step_log(path);
  CHECK_FALSE(log.cut);
  CHECK(log.header == header);
  CHECK(log.order.size() == log.arrivals.size() + log.steps.size() + log.ends.size());
  CHECK(log.steps.size() > 50);
  REQUIRE_FALSE(log.arrivals.empty());
  const LoggedArrival& last = log.arrivals.back();
  CHECK(last.refusal == Refusal::never_fits);
  CHECK(last.offer.patience == Duration(5));
  CHECK(last.offer.cancel_after == kForever);
  REQUIRE(last.offer.request.prefix_hashes.size() == 2);
  CHECK(last.offer.request.prefix_hashes[1] == 0xffffffffffffffffu);
  CHECK(compare_plans(log.steps, log.steps).equal);
  std::vector<LoggedStep> other = log.steps;
  other[3].plan_hash ^= 1;
  CHECK_FALSE(compare_plans(log.steps, other).equal);
  CHECK(compare_plans(log.steps, other).compared == 3);
  other = log.steps;
  other.pop_back();
  CHECK_FALSE(compare_plans(log.steps, other).equal);
  std::filesystem::remove(path);
}

TEST_CASE("a log that was cut keeps its whole lines, and a fault in the middle is an error") {
  const std::string path = temporary("step_log_cut");
  {
    StepLogWriter writer(path, {});
    FakeRun(8, {}).run(writer);
    writer.close();
  }
  std::string text = read_file(path);
  CHECK_FALSE(read_step_log(path).cut);
  // Without its closing line, as the draft of a run that was killed.
  text.erase(text.rfind("{\"event\":\"close\""));
  std::ofstream(path, std::ios::binary) << text;
  const StepLog whole = read_step_log(path);
  CHECK(whole.cut);
  std::ofstream(path, std::ios::binary) << text.substr(0, text.size() - 5);
  const StepLog cut = read_step_log(path);
  CHECK(cut.cut);
  CHECK(cut.order.size() == whole.order.size() - 1);
  text.insert(text.find('\n', text.size() / 2) + 1, "{\"event\":\"st\n");
  std::ofstream(path, std::ios::binary) << text;
  CHECK_THROWS_AS(read_step_log(path), InputError);
  std::ofstream(path, std::ios::binary) << "";
  CHECK_THROWS_AS(read_step_log(path), InputError);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(StepLogWriter("/nonexistent/folder/log", {}), DeviceError);
}

TEST_CASE("a step log appears when it is closed, and not at all when the run fails") {
  const std::string path = temporary("step_log_whole");
  const auto drafts = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
      if (entry.path().string().starts_with(path)) found.push_back(entry.path().string());
    return found;
  };
  {
    StepLogWriter writer(path, {}, 1);
    FakeRun(8, {}).run(writer);
    CHECK_FALSE(std::filesystem::exists(path));
    REQUIRE(drafts().size() == 1);
    // It can be followed while it grows.
    CHECK(read_step_log(drafts()[0]).steps.size() > 50);
  }
  CHECK(drafts().empty());
  StepLogWriter closed(path, {});
  closed.close();
  CHECK((drafts() == std::vector<std::string>{path}));
  std::filesystem::remove(path);
}

TEST_CASE("a plan's hash sees every decision and their order") {
  const std::vector<Chunk> chunks{{Slot{1}, Handle{1}, 5, 0, true}, {Slot{2}, Handle{2}, 6, 0, true}};
  const std::vector<Chunk> swapped{chunks[1], chunks[0]};
  const std::vector<DecodeRow> rows{{Slot{3}, 7}};
  const std::vector<Admission> admissions{{Slot{1}, Handle{1}, nullptr, 5, 0, false}};
  const std::vector<Eviction> evictions{{Slot{1}, Handle{1}, 5, false}};
  const std::vector<Copy> copies{{Slot{1}, Handle{1}, Tier::device, Tier::host, 2}};
  const std::vector<LockStepChange> changes{{Slot{1}, Handle{1}, 5, true}};
  StepPlan base;
  base.chunks = chunks;
  const std::vector<std::function<void(StepPlan&)>> alterations{
      [&](StepPlan& p) { p.chunks = swapped; },
      [&](StepPlan& p) { p.chunks = p.chunks.first(1); },
      [&](StepPlan& p) { p.decodes = rows; },
      [&](StepPlan& p) { p.admissions = admissions; },
      [&](StepPlan& p) { p.evictions = evictions; },
      [&](StepPlan& p) { p.copies = copies; },
      [&](StepPlan& p) { p.lock_step_changes = changes; },
      [&](StepPlan& p) { p.left_out[2] = 1; },
      [&](StepPlan& p) { p.left_out[3] = 1; },
      [&](StepPlan& p) { p.decode_count = 1; },
      [&](StepPlan& p) { p.decode_context_sum = 1; },
      [&](StepPlan& p) { p.wasted_rows = 1; },
      [&](StepPlan& p) { p.dead_rows = 1; },
      [&](StepPlan& p) { p.padding_tokens = 1; },
      [&](StepPlan& p) { p.sampled_rows = 1; },
  };
  std::vector<std::uint64_t> hashes{plan_hash(base)};
  for (const auto& alter : alterations) {
    StepPlan plan = base;
    alter(plan);
    hashes.push_back(plan_hash(plan));
  }
  for (std::size_t a = 0; a < hashes.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) CHECK(hashes[a] != hashes[b]);
  StepPlan same = base;
  same.repeats_max = 9;
  CHECK(plan_hash(same) == hashes[0]);
}

#include "models/profile.hpp"

#include <cstdio>

#include "models/profile_json.hpp"
#include "sim/base/error.hpp"
#include "sim/base/files.hpp"
#include "tests/catch.hpp"
#include "tests/models/synthetic.hpp"

using namespace foretoken;
using namespace foretoken::test;

namespace {

const Profile& profile() {
  static const Profile made = fit_profile(timings({}, sweep(), 3, 8), origin(), {{1, 1000000}, {8, 4000000}});
  return made;
}

}  // namespace

TEST_CASE("a profile survives writing and reading, prices and hash included") {
  const std::string path = std::string(FORETOKEN_BUILD_DIR) + "/profile_test.json";
  write_profile(path, profile());
  const Profile again = read_profile(path);
  std::remove(path.c_str());
  CHECK(again.hash == profile().hash);
  CHECK(again.fit == profile().fit);
  CHECK(again.errors == profile().errors);
  CHECK(again.range == profile().range);
  CHECK(again.transfer == profile().transfer);
  CHECK(again.origin.shape == profile().origin.shape);
  CHECK(again.samples.size() == profile().samples.size());
  CHECK(make_cost(again)->hash() == make_cost(profile())->hash());
  CHECK(make_cost(again)->grade() == Grade::calibrated);
}

TEST_CASE("a profile whose content was edited is refused") {
  const std::string text = profile_to_json(profile()).dump();
  CHECK_NOTHROW(profile_from_json(Json::parse(text, "p.json"), "p.json"));
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const std::size_t at = changed.find(from);
    REQUIRE(at != std::string::npos);
    changed.replace(at, from.size(), to);
    return Json::parse(changed, "p.json");
  };
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(profile_from_json(edited("a test machine", "a fast machine"), "p.json"),
                    Contains("edited"));
  CHECK_THROWS_WITH(profile_from_json(edited("\"chunk_ps\":", "\"chunk_ps\":1"), "p.json"), Contains("hash"));
  CHECK_THROWS_WITH(profile_from_json(edited("\"durations_ps\":[", "\"durations_ps\":[5,"), "p.json"),
                    Contains("hash"));
  CHECK_THROWS_WITH(profile_from_json(edited("\"depth\":1", "\"depth\":0"), "p.json"), Contains("hash"));
  CHECK_THROWS_WITH(profile_from_json(edited("\"schema_version\":1", "\"schema_version\":2"), "p.json"),
                    Contains("schema_version"));
  CHECK_THROWS_WITH(profile_from_json(edited("\"threads\":2", "\"threds\":2"), "p.json"),
                    Contains("threads"));
}

TEST_CASE("malformed profiles are refused with a place, never half read") {
  for (const std::string text :
       {"{}", "[]", R"({"schema_version": 1})", R"({"schema_version": "1", "hash": ""})",
        R"({"schema_version": 1, "hash": "", "origin": {"threads": 0}})"})
    CHECK_THROWS_AS(profile_from_json(Json::parse(text, "p.json"), "p.json"), InputError);
  CHECK_THROWS_AS(read_profile("/nonexistent/profile.json"), InputError);
}

TEST_CASE("the same samples give the same profile, and other samples another hash") {
  const Profile same = fit_profile(timings({}, sweep(), 3, 8), origin(), {{1, 1000000}, {8, 4000000}});
  CHECK(same.hash == profile().hash);
  CHECK(fit_profile(timings({}, sweep(), 3, 9), origin()).hash != profile().hash);
}

TEST_CASE("samples faster than the stated limits are counted in the profile") {
  ProfileOrigin honest = origin();
  honest.limits.bandwidth_bytes_per_s = 70e9;
  honest.limits.peak_flops_per_s = {4e11, 1.6e12};
  const std::vector<Sample> samples = timings({}, sweep(), 1, 1);
  CHECK(fit_profile(samples, honest).samples_below_floor == 0);
  honest.limits.bandwidth_bytes_per_s = 7e9;
  const Profile wrong = fit_profile(samples, honest);
  CHECK(wrong.samples_below_floor > 0);
  const auto cost = make_cost(wrong);
  (void)cost->step_ps(decodes(1, 16).features());
  CHECK(cost->counters().below_floor == 1);
}

TEST_CASE("regimes follow from what a step holds") {
  CHECK(regime_of(prefill(4, 0, true).features()) == Regime::prefill);
  CHECK(regime_of(decodes(4, 100).features()) == Regime::decode);
  CHECK(regime_of(ragged(4, 100, 105).features()) == Regime::decode);
  CHECK(regime_of(ragged(4, 100, 1000).features()) == Regime::ragged);
  CHECK(regime_of(mixed(4, 0, decodes(2, 100)).features()) == Regime::mixed);
}

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/scenario.hpp"

// Whatever the text, a scenario is refused with an error for users, or resolves to one that reads back as
// itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretoken;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Scenario scenario = read_scenario(Json::parse(text, "fuzz", true), "fuzz", "");
    const Json written = scenario_to_json(scenario);
    const Json again = scenario_to_json(read_scenario(written, "written", ""));
    FT_CHECK(again == written, written.dump(), again.dump());
  } catch (const InputError&) {
  } catch (const InfeasibleError&) {
  }
  return 0;
}

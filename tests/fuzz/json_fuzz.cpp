#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"

using namespace foretoken;

/// Any bytes parse or give an InputError, and what parses survives a round trip through its own text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool comments : {false, true}) {
    try {
      const Json value = Json::parse(text, "fuzz.json", comments);
      for (const int indent : {-1, 2}) FT_CHECK(Json::parse(value.dump(indent), "again") == value);
      if (!value.is_object()) continue;
      JsonReader reader(value, "fuzz.json");
      reader.integer("requests", 1, 0, 100);
      reader.choice("order", {"fcfs", "priority"}, 0);
      reader.finish();
    } catch (const InputError&) {
    }
  }
  return 0;
}

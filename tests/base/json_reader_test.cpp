#include <functional>
#include <string>

#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "tests/catch.hpp"

using namespace foretoken;

namespace {

/// The error that `read` runs into over the object `text`; empty when there is none.
std::string fault(std::string_view text, const std::function<void(JsonReader&)>& read) {
  try {
    const Json value = Json::parse(text, "s.json");
    JsonReader reader(value, "s.json");
    read(reader);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("an unknown key is refused with the nearest known one", "[unit]") {
  const std::string text = "{\"fleet\": {\n\"replicas\": 1,\n\"repilcas\": 2}}";
  CHECK(fault(text,
              [](JsonReader& reader) {
                JsonReader fleet = reader.child("fleet");
                fleet.integer("replicas", 1, 100);
                fleet.finish();
              }) ==
        "s.json:3: /fleet/repilcas: expected a known key, found the unknown key \"repilcas\" (did you mean "
        "\"replicas\"?)");
  CHECK(fault("{\"zzz\": 1}", [](JsonReader& reader) {
          reader.boolean("preset", true);
          reader.boolean("depth", true);
          reader.finish();
        }) == "s.json:1: /zzz: expected one of \"preset\", \"depth\", found the unknown key \"zzz\"");
}

TEST_CASE("a wrong type, range or choice names place, expectation and finding", "[unit]") {
  const auto integer = [](JsonReader& reader) { reader.integer("n", 1, 10); };
  CHECK(fault("{\"n\": \"x\"}", integer) ==
        "s.json:1: /n: expected an integer in [1, 10], found a string \"x\"");
  CHECK(fault("{\"n\": 11}", integer) == "s.json:1: /n: expected an integer in [1, 10], found 11");
  CHECK(fault("{\"n\": 1.5}", integer) == "s.json:1: /n: expected an integer in [1, 10], found 1.5");
  CHECK(fault("{\"n\": 1e300}", integer) == "s.json:1: /n: expected an integer in [1, 10], found 1e+300");
  CHECK(fault("{\"n\": 18446744073709551615}", integer) ==
        "s.json:1: /n: expected an integer in [1, 10], found 18446744073709551615");
  CHECK(fault("{}", integer) == "s.json:1: expected a member \"n\", found none");
  CHECK(fault("{\"n\": 5.0}", integer).empty());
  CHECK(fault("{\"n\": -0.5}", [](JsonReader& reader) { reader.number("n", 0, 1); }) ==
        "s.json:1: /n: expected a number in [0, 1], found -0.5");
  CHECK(fault("{\"n\": 1}", [](JsonReader& reader) { reader.boolean("n", false); }) ==
        "s.json:1: /n: expected true or false, found an integer");
  CHECK(fault("{\"n\": 1}", [](JsonReader& reader) { reader.string("n"); }) ==
        "s.json:1: /n: expected a string, found an integer");
  CHECK(fault("{\"n\": 1}", [](JsonReader& reader) { reader.child("n"); }) ==
        "s.json:1: /n: expected an object, found an integer");
  CHECK(fault("{\"o\": \"fcsf\"}",
              [](JsonReader& reader) {
                reader.choice("o", {"fcfs", "priority"}, 0);
              }) ==
        "s.json:1: /o: expected one of \"fcfs\", \"priority\", found a string \"fcsf\" (did you mean "
        "\"fcfs\"?)");
  CHECK(fault("[]", [](JsonReader&) {}) == "s.json:1: expected an object, found an array");
}

TEST_CASE("absent and null members read as their fallback", "[unit]") {
  const Json value = Json::parse("{\"a\": null, \"choice\": \"b\"}", "s.json");
  JsonReader reader(value, "s.json");
  CHECK(reader.integer("a", 7, 0, 10) == 7);
  CHECK(reader.number("b", 0.5, 0, 1) == 0.5);
  CHECK(reader.string("c", "x") == "x");
  CHECK(reader.boolean("d", true));
  CHECK(reader.choice("choice", {"a", "b"}, 0) == 1);
  CHECK(reader.child("none").integer("e", 3, 0, 10) == 3);
  CHECK(reader.has("a"));
  CHECK_FALSE(reader.has("b"));
  CHECK_NOTHROW(reader.finish());
}

TEST_CASE("keys are escaped in pointers", "[unit]") {
  CHECK(fault("{\"a/b~\": 1}", [](JsonReader& reader) { reader.string("a/b~"); }) ==
        "s.json:1: /a~1b~0: expected a string, found an integer");
}

TEST_CASE("a value that was not parsed has a place without a line", "[unit]") {
  const Json value = Json::object({{"n", 1}});
  CHECK(JsonReader(value, "--set").place("n") == "--set: /n");
}

TEST_CASE("a suggestion is close or it is not made", "[unit]") {
  const std::vector<std::string> names{"fcfs", "priority", "shortest"};
  CHECK(nearest("prority", names) == "priority");
  CHECK(nearest("fcsf", names) == "fcfs");
  CHECK(nearest("lifo", names).empty());
  CHECK(nearest("x", {"y"}).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest(std::string(100000, 'a'), names).empty());
}

// Each law is first seen to fail on a seeded fault: the same check of the same run, once without and once
// with it. The faults stand in fault_rows_*.cpp, a row each.
#include "tests/property/fault_rows.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "tests/catch.hpp"

using namespace foretoken;
using namespace foretoken::laws;

namespace {

std::vector<FaultRow> all_rows() {
  std::vector<FaultRow> rows;
  for (const auto& some : {safety_rows(), plan_rows(), liveness_rows(), run_rows(), part_rows()})
    rows.insert(rows.end(), some.begin(), some.end());
  return rows;
}

/// The numbers and letters of a row, by blanks.
std::vector<std::string> names_of(const FaultRow& row) {
  std::istringstream text(row.laws);
  std::vector<std::string> names;
  for (std::string name; text >> name;) names.push_back(name);
  return names;
}

}  // namespace

TEST_CASE("each law holds in a run, and breaks by its name when the run has a fault", "[property]") {
  for (const FaultRow& row : all_rows()) {
    INFO("law " << row.laws << ", fault: " << row.fault);
    if (row.impossible) {
      CHECK(std::string(row.breach).size() > 20);
      continue;
    }
    CHECK(row.run(false) == "");
    const std::string breach = row.run(true);
    INFO("expected: " << row.breach << "\nfound: " << breach);
    CHECK(breach.find(row.breach) != std::string::npos);
  }
}

TEST_CASE("every law that tests hold the system to has been seen to break", "[property]") {
  std::set<std::string> named;
  for (const FaultRow& row : all_rows())
    for (const std::string& name : names_of(row)) named.insert(name);
  std::set<std::string> expected;
  for (int law = 1; law <= 16; ++law) expected.insert(std::to_string(law));
  for (int law = 1; law <= 13; ++law) expected.insert("I" + std::to_string(law));
  CHECK(named == expected);
}

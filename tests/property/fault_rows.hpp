#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/support/seeded_faults.hpp"

namespace foretoken::laws {

/// A fault and the law that it breaks.
struct FaultRow {
  /// By number, as the pages of laws and invariants count them: "3", "I2"; several with blanks between.
  const char* laws = "";
  /// What is wrong.
  const char* fault = "";
  /// What the law's check says then; for a fault that cannot be seeded, why not.
  const char* breach = "";
  /// What the check says of a run without or with the fault; empty when the law holds.
  std::function<std::string(bool faulty)> run;
  /// Nothing outside can break it; the compiler holds the law.
  bool impossible = false;
};

/// Conservation, lifecycle and order of events, from the audit.
std::vector<FaultRow> safety_rows();
/// What a plan may hold, from the audit.
std::vector<FaultRow> plan_rows();
/// Progress, order of service, memory rules, from the audit.
std::vector<FaultRow> liveness_rows();
/// Laws that compare runs.
std::vector<FaultRow> run_rows();
/// Laws of parts and of queueing theory.
std::vector<FaultRow> part_rows();

/// A row whose run is audited under that setup.
FaultRow audit_row(const char* laws, const char* fault, const char* breach, const Setup& setup,
                   const Fault& seeded);
/// A row whose check is tried on drawn seeds; with the fault, the first breach counts.
FaultRow drawn_row(const char* laws, const char* fault, const char* breach, int seeds,
                   const std::function<void(Draw&, bool faulty)>& check);

/// Six requests that come one after the other into a pool with room for all.
Setup roomy();
/// Four requests that come together and outgrow the pool.
Setup scarce();

}  // namespace foretoken::laws

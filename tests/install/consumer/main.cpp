#include <iostream>

#include "sim/base/json.hpp"
#include "sim/scenario.hpp"
#include "sim/simulation.hpp"

/// What another program needs to ask the simulator a question: a scenario from text, and its report.
int main() {
  const foretoken::Json document = foretoken::Json::parse(R"({
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "cost": {"roofline": {}},
    "engine": {"preset": "vllm-v1", "max_model_len": 8192},
    "workload": {
      "arrivals": {"kind": "poisson", "rate_per_s": 10},
      "prompt_tokens": {"kind": "uniform", "min": 100, "max": 1000},
      "output_tokens": {"kind": "uniform", "min": 1, "max": 200},
      "requests": 200
    }
  })",
                                                          "consumer");
  const foretoken::Scenario scenario = foretoken::read_scenario(document, "consumer", ".");
  const foretoken::Simulation simulation = foretoken::simulate(scenario);
  const foretoken::RequestTotals& totals = simulation.report.whole.totals;
  std::cout << "served " << totals.finished << " of " << totals.offered << " requests\n";
  return totals.finished == totals.offered ? 0 : 1;
}

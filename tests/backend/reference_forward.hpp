#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cpu/weights.hpp"

namespace foretoken::testing {

/// Logits of every position of one sequence, [tokens][vocab], in plain double precision: no cache, no pages,
/// no batch. Reads the same (already rounded) weights as the backend.
std::vector<std::vector<double>> reference_logits(const Weights<Cpu>& weights,
                                                  std::span<const std::int32_t> tokens);

}  // namespace foretoken::testing

#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/element.hpp"

namespace foretoken::cpu {

/// Instruction sets with kernels of their own, from the plainest to the fastest.
enum class Isa { portable, avx2, avx512, avx512_bf16 };

/// The name used in FORETOKEN_ISA, in profiles and in tables: "portable", "avx2", "avx512", "avx512_bf16".
std::string_view isa_name(Isa isa);

/// The ISA of that name, or nothing.
std::optional<Isa> isa_from_name(std::string_view name);

/// Whether this processor can run the kernels of `isa`.
bool is_available(Isa isa);

/// All ISAs this processor can run, plainest first; never empty.
std::vector<Isa> available_isas();

/// The ISA in use: the one set by `set_isa`, else the environment's FORETOKEN_ISA where this processor has
/// it, else the fastest available. An unknown or unavailable name in the environment is ignored; a caller
/// that wants to refuse it asks `isa_from_name` and `is_available`.
Isa active_isa();

/// Overrides the choice for the whole process (tests, benches); std::nullopt restores the default. Returns
/// false and changes nothing when this processor cannot run `isa`. Not to be called while kernels run.
bool set_isa(std::optional<Isa> isa);

/// The element type that products and attention of `isa` read their activations in when weights (or cached
/// keys and values) are stored as `stored`: bf16 only where dot products of bf16 pairs exist, f32 everywhere
/// else. Norm, SiLU, RoPE and attention write this type themselves, so that no pass exists for the conversion
/// alone.
constexpr ElementType activation_type(Isa isa, ElementType stored) {
  return isa == Isa::avx512_bf16 && stored == ElementType::bf16 ? ElementType::bf16 : ElementType::f32;
}

}  // namespace foretoken::cpu

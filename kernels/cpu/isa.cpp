#include "kernels/cpu/isa.hpp"

#include <array>
#include <atomic>
#include <cstdlib>

namespace foretoken::cpu {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"portable", "avx2", "avx512", "avx512_bf16"};

Isa default_isa() {
  if (const char* wish = std::getenv("FORETOKEN_ISA")) {
    const std::optional<Isa> isa = isa_from_name(wish);
    if (isa && is_available(*isa)) return *isa;
  }
  return available_isas().back();
}

constexpr int kUnset = -1;
std::atomic<int> chosen_isa{kUnset};

}  // namespace

std::string_view isa_name(Isa isa) { return kNames[static_cast<std::size_t>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Isa>(i);
  return std::nullopt;
}

bool is_available(Isa isa) {
  if (isa == Isa::portable) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::avx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (isa == Isa::avx512) return avx512;
  return avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (is_available(isa)) isas.push_back(isa);
  return isas;
}

Isa active_isa() {
  int isa = chosen_isa.load(std::memory_order_relaxed);
  if (isa == kUnset) {
    isa = static_cast<int>(default_isa());
    chosen_isa.store(isa, std::memory_order_relaxed);
  }
  return static_cast<Isa>(isa);
}

bool set_isa(std::optional<Isa> isa) {
  if (isa && !is_available(*isa)) return false;
  chosen_isa.store(isa ? static_cast<int>(*isa) : kUnset, std::memory_order_relaxed);
  return true;
}

}  // namespace foretoken::cpu

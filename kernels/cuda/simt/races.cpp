#include "kernels/cuda/simt/races.hpp"

#include <algorithm>
#include <bit>

namespace foretoken::cuda::simt {

bool& looks_for_races() {
  static bool looks = false;
  return looks;
}

Races::Races(std::size_t bytes) : cells_(bytes) {}

void Races::begin_block(std::uint32_t threads) {
  ++epoch_;
  clocks_.assign(threads, {});
  for (std::uint32_t t = 0; t < threads; ++t) clocks_[t][t % 32] = 1;
  report_.clear();
}

void Races::sync_warp(std::uint32_t warp, std::uint32_t mask) {
  std::array<std::uint32_t, 32> known{};
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto& lane = clocks_[warp * 32 + static_cast<std::uint32_t>(std::countr_zero(left))];
    for (std::size_t i = 0; i < 32; ++i) known[i] = std::max(known[i], lane[i]);
  }
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    clocks_[warp * 32 + lane] = known;
    ++clocks_[warp * 32 + lane][lane];
  }
}

bool Races::is_before(const Mark& mark, std::uint32_t thread) const {
  if (mark.epoch != epoch_ || mark.thread == thread) return true;
  return mark.thread / 32 == thread / 32 && clocks_[thread][mark.thread % 32] >= mark.clock;
}

void Races::find(const Mark& mark, const char* what, std::uint32_t thread, std::size_t offset,
                 Access access) {
  if (!report_.empty() || is_before(mark, thread) || (mark.is_atomic && access == Access::atomic)) return;
  report_ = "race in shared memory: thread " + std::to_string(thread) +
            (access == Access::read ? " reads" : " writes") + " byte " + std::to_string(offset) +
            " that thread " + std::to_string(mark.thread) + what + " with no barrier between";
}

void Races::touch(std::uint32_t thread, std::size_t offset, std::size_t bytes, Access access) {
  const Mark now{epoch_, clocks_[thread][thread % 32], thread, access == Access::atomic};
  for (std::size_t i = offset; i < std::min(offset + bytes, cells_.size()); ++i) {
    Cell& cell = cells_[i];
    find(cell.write, " wrote", thread, i, access);
    if (access == Access::read) {
      if (cell.reads[0].thread != thread) cell.reads[1] = cell.reads[0];
      cell.reads[0] = now;
      continue;
    }
    for (const Mark& read : cell.reads) find(read, " read", thread, i, access);
    cell.write = now;
  }
}

}  // namespace foretoken::cuda::simt

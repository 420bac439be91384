#include "backend/cpu/limits.hpp"

#include "kernels/cpu/isa.hpp"

namespace foretoken {

DeviceSheet machine_sheet(const bench::MachineLimits& limits, int threads) {
  DeviceSheet sheet;
  sheet.name = "this machine";
  sheet.source = "measured by foretoken bench machine";
  for (const bench::BandwidthPoint& point : limits.read) {
    if (point.threads != threads) continue;
    sheet.bandwidth_by_working_set.push_back({static_cast<double>(point.bytes), point.bytes_per_s});
    sheet.bandwidth_bytes_per_s = point.bytes_per_s;
  }
  sheet.peak_flops_per_s.assign(static_cast<std::size_t>(Precision::int4) + 1, 0.0);
  const cpu::Isa isa = cpu::active_isa();
  for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
    const Precision precision = type == ElementType::f32 ? Precision::f32 : Precision::bf16;
    sheet.peak_flops_per_s[static_cast<std::size_t>(precision)] =
        bench::peak_flops(limits, isa, type, threads);
  }
  return sheet;
}

}  // namespace foretoken

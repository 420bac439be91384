#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/shape.hpp"
#include "sim/base/json.hpp"

namespace foretoken {

/// Read bandwidth measured on a working set of a given size, streamed over and over.
struct BandwidthPoint {
  double working_set_bytes = 0;      ///< Bytes read in one pass.
  double bandwidth_bytes_per_s = 0;  ///< Best sustained rate.
  friend bool operator==(const BandwidthPoint&, const BandwidthPoint&) = default;
};

/// What a device can do at most, from its datasheet or measured on it. Zero means "not known".
struct DeviceSheet {
  std::string name;                      ///< As printed in reports.
  std::string source;                    ///< Where the figures come from.
  double bandwidth_bytes_per_s = 0;      ///< Main memory read bandwidth.
  double memory_bytes = 0;               ///< Memory of one device.
  std::vector<double> peak_flops_per_s;  ///< Dense peak by Precision (index); 0 where not supported.
  double idle_watts = 0;                 ///< Power when idle.
  double busy_watts = 0;                 ///< Power limit under load.
  double price_per_hour = 0;             ///< Currency units per device and hour.
  double host_link_bytes_per_s = 0;      ///< One direction to host memory.
  double peer_link_bytes_per_s = 0;      ///< One direction to the other devices of a node.
  std::vector<BandwidthPoint> bandwidth_by_working_set;  ///< Optional, by rising size.
  friend bool operator==(const DeviceSheet&, const DeviceSheet&) = default;
};

/// Peak rate for products whose weights have this precision. Where the device lacks it: the next wider
/// format, as such weights are widened before use; 0 when nothing is known.
[[nodiscard]] double peak_flops(const DeviceSheet& device, Precision precision);
/// Read bandwidth at a working-set size: linear in the logarithm of the size between measured points,
/// constant outside; `bandwidth_bytes_per_s` where none were measured.
[[nodiscard]] double bandwidth_at(const DeviceSheet& device, double working_set_bytes);

/// Reads a device sheet; unknown keys are refused. `place` is the file.
[[nodiscard]] DeviceSheet device_from_json(const Json& json, const std::string& place);
/// The sheet as `device_from_json` reads it.
[[nodiscard]] Json device_to_json(const DeviceSheet& device);
/// Finds a device: a path to a JSON file, else `<name>.json` in `data_folder`/devices; an unknown name is
/// an InputError that lists the shipped ones.
[[nodiscard]] DeviceSheet find_device(const std::string& name_or_path, const std::string& data_folder);

}  // namespace foretoken

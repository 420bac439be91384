#include "models/device.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "sim/base/error.hpp"

namespace foretoken {
namespace {

constexpr int kPrecisions = 6;
constexpr double kHuge = 1e24;

double finite_number(JsonReader& reader, std::string_view key) { return reader.number(key, 0.0, 0.0, kHuge); }

std::vector<double> read_peaks(JsonReader& reader) {
  JsonReader peaks = reader.child("peak_flops_per_s");
  std::vector<double> result(kPrecisions, 0.0);
  for (int i = 0; i < kPrecisions; ++i)
    result[static_cast<std::size_t>(i)] = finite_number(peaks, precision_name(static_cast<Precision>(i)));
  peaks.finish();
  return result;
}

std::vector<BandwidthPoint> read_curve(JsonReader& reader, const std::string& place) {
  std::vector<BandwidthPoint> curve;
  const Json* points = reader.get("bandwidth_by_working_set");
  if (!points) return curve;
  if (!points->is_array()) reader.fail("bandwidth_by_working_set", "an array of objects", points->describe());
  for (const Json& value : points->as_array()) {
    const std::string pointer = "/bandwidth_by_working_set/" + std::to_string(curve.size());
    JsonReader point(value, place, pointer);
    curve.push_back(
        {point.number("working_set_bytes", 1.0, kHuge), point.number("bandwidth_bytes_per_s", 1.0, kHuge)});
    point.finish();
    if (curve.size() > 1 && curve[curve.size() - 2].working_set_bytes >= curve.back().working_set_bytes)
      point.fail("working_set_bytes", "rising sizes", value.dump());
  }
  return curve;
}

}  // namespace

double peak_flops(const DeviceSheet& device, Precision precision) {
  const auto known = [&](Precision format) {
    const auto index = static_cast<std::size_t>(format);
    return index < device.peak_flops_per_s.size() ? device.peak_flops_per_s[index] : 0.0;
  };
  if (known(precision) > 0) return known(precision);
  if (precision == Precision::int4 && known(Precision::int8) > 0) return known(Precision::int8);
  if (precision != Precision::f32 && known(Precision::bf16) > 0) return known(Precision::bf16);
  if (precision != Precision::f32 && known(Precision::f16) > 0) return known(Precision::f16);
  return known(Precision::f32);
}

double bandwidth_at(const DeviceSheet& device, double working_set_bytes) {
  const std::vector<BandwidthPoint>& curve = device.bandwidth_by_working_set;
  if (curve.empty()) return device.bandwidth_bytes_per_s;
  if (working_set_bytes <= curve.front().working_set_bytes) return curve.front().bandwidth_bytes_per_s;
  if (working_set_bytes >= curve.back().working_set_bytes) return curve.back().bandwidth_bytes_per_s;
  std::size_t upper = 1;
  while (curve[upper].working_set_bytes < working_set_bytes) ++upper;
  const BandwidthPoint& low = curve[upper - 1];
  const BandwidthPoint& high = curve[upper];
  const double share = std::log(working_set_bytes / low.working_set_bytes) /
                       std::log(high.working_set_bytes / low.working_set_bytes);
  return low.bandwidth_bytes_per_s + share * (high.bandwidth_bytes_per_s - low.bandwidth_bytes_per_s);
}

DeviceSheet device_from_json(const Json& json, const std::string& place) {
  JsonReader reader(json, place);
  if (!json.is_object()) reader.fail("", "an object", json.describe());
  DeviceSheet device;
  device.name = reader.string("name", "");
  device.source = reader.string("source", "");
  device.bandwidth_bytes_per_s = finite_number(reader, "bandwidth_bytes_per_s");
  device.memory_bytes = finite_number(reader, "memory_bytes");
  device.peak_flops_per_s = read_peaks(reader);
  device.idle_watts = finite_number(reader, "idle_watts");
  device.busy_watts = finite_number(reader, "busy_watts");
  device.price_per_hour = finite_number(reader, "price_per_hour");
  device.host_link_bytes_per_s = finite_number(reader, "host_link_bytes_per_s");
  device.peer_link_bytes_per_s = finite_number(reader, "peer_link_bytes_per_s");
  device.bandwidth_by_working_set = read_curve(reader, place);
  reader.finish();
  return device;
}

Json device_to_json(const DeviceSheet& device) {
  Json peaks = Json::object();
  for (std::size_t i = 0; i < device.peak_flops_per_s.size(); ++i)
    if (device.peak_flops_per_s[i] > 0)
      peaks.set(precision_name(static_cast<Precision>(i)), device.peak_flops_per_s[i]);
  Json curve = Json::array();
  for (const BandwidthPoint& point : device.bandwidth_by_working_set)
    curve.push_back(Json::object({{"working_set_bytes", point.working_set_bytes},
                                  {"bandwidth_bytes_per_s", point.bandwidth_bytes_per_s}}));
  return Json::object({{"name", device.name},
                       {"source", device.source},
                       {"bandwidth_bytes_per_s", device.bandwidth_bytes_per_s},
                       {"memory_bytes", device.memory_bytes},
                       {"peak_flops_per_s", peaks},
                       {"idle_watts", device.idle_watts},
                       {"busy_watts", device.busy_watts},
                       {"price_per_hour", device.price_per_hour},
                       {"host_link_bytes_per_s", device.host_link_bytes_per_s},
                       {"peer_link_bytes_per_s", device.peer_link_bytes_per_s},
                       {"bandwidth_by_working_set", curve}});
}

DeviceSheet find_device(const std::string& name_or_path, const std::string& data_folder) {
  namespace fs = std::filesystem;
  const fs::path path(name_or_path);
  if (path.extension() == ".json" || path.has_parent_path())
    return device_from_json(Json::parse_file(name_or_path), name_or_path);
  const std::string folder = (fs::path(data_folder) / "devices").string();
  const std::vector<std::string> names = json_names(folder);
  if (std::find(names.begin(), names.end(), name_or_path) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw input_error("device", "a path to a device sheet, or one of " + known, '"' + name_or_path + '"');
  }
  const std::string file = (fs::path(folder) / (name_or_path + ".json")).string();
  return device_from_json(Json::parse_file(file), file);
}

}  // namespace foretoken

#include "backend/cpu/runtime.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <system_error>

#include "sim/base/error.hpp"

namespace foretoken {
namespace {

int checked_threads(int threads) {
  if (threads < 1 || threads > 1024)
    throw DeviceError("CPU backend: expected 1 to 1024 threads, found " + std::to_string(threads));
  return threads;
}

}  // namespace

Runtime<Cpu>::Runtime(int threads) try : pool_(checked_threads(threads)) {
} catch (const std::system_error& error) {
  throw DeviceError(std::string("CPU backend: cannot start threads: ") + error.what());
}

cpu::Buffer Runtime<Cpu>::allocate(std::size_t bytes, const std::string& purpose) const {
  // Asking first: the system grants more than it has and ends the process when the memory is used.
  const std::size_t available = available_memory_bytes();
  const std::string refusal = "CPU backend: no memory for " + purpose + ": " + std::to_string(bytes >> 20) +
                              " MiB needed, " + std::to_string(available >> 20) + " MiB available";
  if (available != 0 && bytes > available) throw DeviceError(refusal);
  try {
    return cpu::Buffer(bytes);
  } catch (const std::bad_alloc&) {
    throw DeviceError(refusal);
  }
}

void Runtime<Cpu>::copy(void* target, const void* source, std::size_t bytes) const {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

std::size_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes && std::getline(file, unit))
    if (key == "MemAvailable:") return kibibytes * 1024;
  return 0;
}

int usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace foretoken

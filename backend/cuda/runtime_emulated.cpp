#include <cstdlib>
#include <cstring>
#include <new>

#include "backend/cpu/runtime.hpp"
#include "backend/cuda/runtime.hpp"
#include "kernels/cuda/simt/emulator.hpp"
#include "kernels/cuda/simt/product_host.hpp"
#include "kernels/cuda/simt/stream.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

/// Device memory begins with what reads as NaN.
constexpr int kPoison = 0xff;

std::size_t environment_number(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

std::size_t& bytes_in_use() {
  static std::size_t bytes = 0;
  return bytes;
}

/// The size stands before the memory, so that giving it back needs no table.
constexpr std::size_t kHeader = 256;

void* take(std::size_t bytes) {
  auto* piece =
      static_cast<std::byte*>(std::aligned_alloc(kHeader, (bytes + 2 * kHeader - 1) / kHeader * kHeader));
  if (piece == nullptr) return nullptr;
  std::memcpy(piece, &bytes, sizeof bytes);
  std::memset(piece + kHeader, kPoison, bytes);
  return piece + kHeader;
}

void give_host(void* data) { std::free(static_cast<std::byte*>(data) - kHeader); }

void give_device(void* data) {
  std::size_t bytes = 0;
  std::memcpy(&bytes, static_cast<std::byte*>(data) - kHeader, sizeof bytes);
  bytes_in_use() -= bytes;
  give_host(data);
}

CudaMemory allocated(void* data, std::size_t bytes, CudaMemory::Release release, const std::string& purpose) {
  if (data == nullptr)
    throw DeviceError("emulated device: no memory for " + purpose + ": " + std::to_string(bytes) + " bytes");
  return CudaMemory(data, bytes, release);
}

cuda::simt::Event& event_of(const CudaHandle& event) { return *static_cast<cuda::simt::Event*>(event.get()); }

}  // namespace

/// An emulated device has these traits of a real one, for tests of what happens when it lacks or loses them:
/// FORETOKEN_EMULATED_BYTES of memory, and FORETOKEN_EMULATED_WAITS waits until it is lost.
struct Runtime<Cuda>::State {
  cuda::simt::Stream steps;
  cuda::simt::Stream copies;
  std::size_t waits_left = environment_number("FORETOKEN_EMULATED_WAITS", SIZE_MAX);

  void count_wait() {
    if (waits_left == 0) throw DeviceError("emulated device: lost, as FORETOKEN_EMULATED_WAITS says");
    --waits_left;
  }
};

Runtime<Cuda>::Runtime(int threads) : state_(std::make_unique<State>()) {
  steps_ = &state_->steps;
  copies_ = &state_->copies;
  facts_.name = "emulated";
  facts_.driver = "none";
  facts_.clocks = "none";
  // Few, so that tiny batches are split as large ones are on a device.
  facts_.multiprocessors = 4;
  facts_.capability = 90;
  facts_.memory_bytes = environment_number("FORETOKEN_EMULATED_BYTES", std::size_t{8} << 30);
  facts_.shared_bytes_per_multiprocessor = 228 * 1024;
  facts_.shared_bytes_per_block = 227 * 1024;
  facts_.has_clock = false;
  cuda::simt::options().threads = threads > 0 ? threads : usable_processors();
}

Runtime<Cuda>::~Runtime() = default;

CudaMemory Runtime<Cuda>::allocate(std::size_t bytes, const std::string& purpose) const {
  const std::size_t free = facts_.memory_bytes - std::min(facts_.memory_bytes, bytes_in_use());
  if (bytes > free)
    throw DeviceError("emulated device: no memory for " + purpose + ": " + std::to_string(bytes) +
                      " bytes asked, " + std::to_string(free) + " free");
  CudaMemory memory = allocated(take(bytes), bytes, give_device, purpose);
  bytes_in_use() += bytes;
  return memory;
}

CudaMemory Runtime<Cuda>::allocate_host(std::size_t bytes, const std::string& purpose) const {
  return allocated(take(bytes), bytes, give_host, purpose);
}

void Runtime<Cuda>::copy(void* target, const void* source, std::size_t bytes, cuda::Stream stream) const {
  if (bytes > 0) stream->submit([=] { std::memcpy(target, source, bytes); });
}

void Runtime<Cuda>::zero(void* target, std::size_t bytes, cuda::Stream stream) const {
  if (bytes > 0) stream->submit([=] { std::memset(target, 0, bytes); });
}

CudaHandle Runtime<Cuda>::make_event() const {
  return CudaHandle(new cuda::simt::Event,
                    [](void* event) { delete static_cast<cuda::simt::Event*>(event); });
}

void Runtime<Cuda>::record(const CudaHandle& event, cuda::Stream stream) const {
  event_of(event) = stream->record();
}

void Runtime<Cuda>::wait(cuda::Stream stream, const CudaHandle& event) const {
  stream->wait(event_of(event));
}

void Runtime<Cuda>::synchronize(const CudaHandle& event) const {
  state_->count_wait();
  cuda::simt::synchronize(event_of(event));
}

void Runtime<Cuda>::synchronize(cuda::Stream stream) const {
  state_->count_wait();
  stream->synchronize();
}

double Runtime<Cuda>::seconds_between(const CudaHandle&, const CudaHandle&) const { return 0; }

void Runtime<Cuda>::begin_capture(cuda::Stream stream) const { stream->begin_capture(); }

CudaHandle Runtime<Cuda>::end_capture(cuda::Stream stream) const {
  return CudaHandle(new cuda::simt::Recording(stream->end_capture()),
                    [](void* recording) { delete static_cast<cuda::simt::Recording*>(recording); });
}

void Runtime<Cuda>::launch(const CudaHandle& recording, cuda::Stream stream) const {
  const auto* work = static_cast<const cuda::simt::Recording*>(recording.get());
  stream->submit([work] {
    for (const auto& piece : *work) piece();
  });
}

void Runtime<Cuda>::product(const cuda::LibraryProductArgs& args, cuda::Stream stream) const {
  cuda::ProductArgs plain;
  plain.rows = args.rows;
  plain.columns = args.columns;
  plain.depth = args.depth;
  plain.x = args.x;
  plain.x_stride = args.x_stride;
  plain.x_type = args.in_type;
  plain.weights = args.weights;
  plain.weight_type = args.in_type == ElementType::f32 ? cuda::WeightType::f32 : cuda::WeightType::bf16;
  plain.y = args.y;
  plain.y_stride = args.y_stride;
  plain.y_type = args.out_type;
  stream->submit([plain] { cuda::simt::product_host(plain); });
}

void Runtime<Cuda>::tune(const cuda::LibraryProductArgs&, cuda::Stream) const {}

}  // namespace foretoken

#include <cuda_runtime.h>

#include <cstdio>

#include "backend/cuda/runtime.hpp"
#include "sim/base/error.hpp"

namespace foretoken {
namespace {

/// Throws unless the call succeeded; the error that CUDA keeps is cleared.
void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(std::string("CUDA: ") + call + ": " + cudaGetErrorName(error) + ": " +
                    cudaGetErrorString(error));
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void free_device(void* data) { static_cast<void>(cudaFree(data)); }
void free_host(void* data) { static_cast<void>(cudaFreeHost(data)); }
void destroy_event(void* event) { static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event))); }
void destroy_graph(void* graph) {
  static_cast<void>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}

cudaEvent_t event_of(const CudaHandle& event) { return static_cast<cudaEvent_t>(event.get()); }

std::string clocks_text(int device) {
  int kilohertz = 0, memory_kilohertz = 0;
  static_cast<void>(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device));
  static_cast<void>(cudaDeviceGetAttribute(&memory_kilohertz, cudaDevAttrMemoryClockRate, device));
  return "up to " + std::to_string(kilohertz / 1000) + " MHz, memory " +
         std::to_string(memory_kilohertz / 1000) + " MHz";
}

CudaFacts facts_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  CudaFacts facts;
  facts.name = properties.name;
  facts.driver = "driver " + std::to_string(driver) + ", runtime " + std::to_string(runtime);
  facts.clocks = clocks_text(device);
  facts.multiprocessors = properties.multiProcessorCount;
  facts.capability = 10 * properties.major + properties.minor;
  facts.memory_bytes = properties.totalGlobalMem;
  facts.shared_bytes_per_multiprocessor = properties.sharedMemPerMultiprocessor;
  facts.shared_bytes_per_block = properties.sharedMemPerBlockOptin;
  return facts;
}

void open_device() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  // Without a driver the call fails and leaves the count as it was.
  if (error != cudaSuccess || count <= 0)
    throw DeviceError(
        std::string("CUDA: no device: ") +
        (error == cudaSuccess ? "none is visible" : cudaGetErrorString(error)) +
        "; --backend cuda-emulated runs without one, --backend cpu on this machine's processors");
  check(cudaSetDevice(0), "cudaSetDevice");
}

}  // namespace

struct Runtime<Cuda>::State {
  std::unique_ptr<cuda::LibraryProducts> library;
  ~State() = default;
};

Runtime<Cuda>::Runtime(int) {
  open_device();
  facts_ = facts_of(0);
  if (facts_.capability < 80)
    throw DeviceError("CUDA: " + facts_.name + " has compute capability " +
                      std::to_string(facts_.capability / 10) + "." + std::to_string(facts_.capability % 10) +
                      ": expected 8.0 or later");
  check(cudaStreamCreateWithFlags(&steps_, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "cudaStreamCreate");
  state_ = std::make_unique<State>();
  try {
    state_->library = std::make_unique<cuda::LibraryProducts>();
  } catch (const cuda::LibraryError& error) {
    throw DeviceError(error.what());
  }
}

Runtime<Cuda>::~Runtime() {
  if (steps_ != nullptr) static_cast<void>(cudaStreamDestroy(steps_));
  if (copies_ != nullptr) static_cast<void>(cudaStreamDestroy(copies_));
}

CudaMemory Runtime<Cuda>::allocate(std::size_t bytes, const std::string& purpose) const {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, bytes == 0 ? 1 : bytes);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0, total = 0;
    static_cast<void>(cudaMemGetInfo(&free, &total));
    throw DeviceError("CUDA: no memory for " + purpose + ": " + mebibytes(bytes) + " asked, " +
                      mebibytes(free) + " of " + mebibytes(total) + " free");
  }
  check(error, "cudaMalloc");
  return CudaMemory(data, bytes, free_device);
}

CudaMemory Runtime<Cuda>::allocate_host(std::size_t bytes, const std::string& purpose) const {
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, bytes == 0 ? 1 : bytes, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw DeviceError("CUDA: no pinned host memory for " + purpose + ": " + mebibytes(bytes) + " asked");
  }
  check(error, "cudaHostAlloc");
  return CudaMemory(data, bytes, free_host);
}

void Runtime<Cuda>::copy(void* target, const void* source, std::size_t bytes, cuda::Stream stream) const {
  if (bytes > 0) check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
}

void Runtime<Cuda>::zero(void* target, std::size_t bytes, cuda::Stream stream) const {
  if (bytes > 0) check(cudaMemsetAsync(target, 0, bytes, stream), "cudaMemsetAsync");
}

CudaHandle Runtime<Cuda>::make_event() const {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return CudaHandle(event, destroy_event);
}

void Runtime<Cuda>::record(const CudaHandle& event, cuda::Stream stream) const {
  check(cudaEventRecord(event_of(event), stream), "cudaEventRecord");
}

void Runtime<Cuda>::wait(cuda::Stream stream, const CudaHandle& event) const {
  check(cudaStreamWaitEvent(stream, event_of(event), 0), "cudaStreamWaitEvent");
}

void Runtime<Cuda>::synchronize(const CudaHandle& event) const {
  check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
}

void Runtime<Cuda>::synchronize(cuda::Stream stream) const {
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

double Runtime<Cuda>::seconds_between(const CudaHandle& begin, const CudaHandle& end) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, event_of(begin), event_of(end)), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

void Runtime<Cuda>::begin_capture(cuda::Stream stream) const {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

CudaHandle Runtime<Cuda>::end_capture(cuda::Stream stream) const {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  check(error, "cudaGraphInstantiate");
  return CudaHandle(executable, destroy_graph);
}

void Runtime<Cuda>::launch(const CudaHandle& recording, cuda::Stream stream) const {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(recording.get()), stream), "cudaGraphLaunch");
}

void Runtime<Cuda>::product(const cuda::LibraryProductArgs& args, cuda::Stream stream) const {
  state_->library->run(args, stream);
}

void Runtime<Cuda>::tune(const cuda::LibraryProductArgs& args, cuda::Stream stream) const {
  static_cast<void>(state_->library->choose(args, stream));
}

}  // namespace foretoken

#include "kernels/cuda/library_product.hpp"

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace foretoken::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kCandidatesMax = 8;
// The first round warms up and is not counted.
constexpr int kRounds = 21;
// What operands are aligned to; the library takes 256 for granted unless told.
constexpr std::uint32_t kAlignment = 16;

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  // An error that is not sticky would otherwise be found by the next launch.
  static_cast<void>(cudaGetLastError());
  throw LibraryError(std::string(call) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error));
}

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError(std::string(call) + ": " + cublasLtGetStatusName(status));
}

void require_support(const LibraryProductArgs& args) {
  if (!LibraryProducts::supports(args))
    throw LibraryError("library_product: a shape or alignment it does not take");
}

/// Memory of the device.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  ~DeviceBytes() { static_cast<void>(cudaFree(data_)); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  void* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// A point in a stream whose time can be asked for.
class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { static_cast<void>(cudaEventDestroy(event_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Stream stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void wait() { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  double microseconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "cudaEventElapsedTime");
    return 1000.0 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class Preference {
 public:
  Preference() {
    check(cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t workspace = kWorkspaceBytes;
    // Parts of a split depth that are added in place take turns by counters, and in the output's type lose
    // digits.
    const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      set(which, kAlignment);
  }
  ~Preference() { static_cast<void>(cublasLtMatmulPreferenceDestroy(preference_)); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreference_t preference_ = nullptr;
};

constexpr cudaDataType_t data_type(ElementType type) {
  return type == ElementType::f32 ? CUDA_R_32F : CUDA_R_16BF;
}

/// A product in the library's words. It counts columns first: row-major W[N, K] is its K x N, to be
/// transposed, x is its K x M, and y its N x M.
struct Problem {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t weights;
  cublasLtMatrixLayoutOpaque_t x;
  cublasLtMatrixLayoutOpaque_t y;

  explicit Problem(const LibraryProductArgs& args) {
    const cudaDataType_t in = data_type(args.in_type);
    const auto rows = static_cast<std::uint64_t>(args.rows);
    const auto columns = static_cast<std::uint64_t>(args.columns);
    const auto depth = static_cast<std::uint64_t>(args.depth);
    check(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescInit");
    const std::int32_t transposed = CUBLAS_OP_T;
    check(cublasLtMatmulDescSetAttribute(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    check(cublasLtMatrixLayoutInit(&weights, in, depth, columns, args.depth), "cublasLtMatrixLayoutInit");
    check(cublasLtMatrixLayoutInit(&x, in, depth, rows, args.x_stride), "cublasLtMatrixLayoutInit");
    check(cublasLtMatrixLayoutInit(&y, data_type(args.out_type), columns, rows, args.y_stride),
          "cublasLtMatrixLayoutInit");
  }
};

LibraryShape shape_of(const LibraryProductArgs& args) {
  return {args.columns, args.depth, library_rows_bucket(args.rows), args.in_type, args.out_type};
}

/// A choice as this handle runs it.
struct Chosen {
  cublasLtMatmulAlgo_t algorithm;
  double microseconds = 0;
  std::uint64_t workspace_bytes = 0;
};

template <class Value>
Value attribute_of(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  Value value{};
  std::size_t written = 0;
  check(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written),
        "cublasLtMatmulAlgoConfigGetAttribute");
  return value;
}

LibraryChoice described(const LibraryShape& shape, const Chosen& chosen) {
  LibraryChoice choice;
  choice.shape = shape;
  static_assert(sizeof choice.algorithm.words == sizeof chosen.algorithm);
  std::memcpy(choice.algorithm.words.data(), &chosen.algorithm, sizeof chosen.algorithm);
  choice.algorithm.id = attribute_of<std::int32_t>(chosen.algorithm, CUBLASLT_ALGO_CONFIG_ID);
  choice.algorithm.tile = attribute_of<std::uint32_t>(chosen.algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID);
  choice.algorithm.stages = attribute_of<std::uint32_t>(chosen.algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  choice.algorithm.split_depth =
      attribute_of<std::int32_t>(chosen.algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  choice.microseconds = chosen.microseconds;
  choice.workspace_bytes = chosen.workspace_bytes;
  return choice;
}

/// The value that a tenth of `times` are below.
double tenth_percentile(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 10];
}

void refuse_capture(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  if (status != cudaStreamCaptureStatusNone)
    throw LibraryError("library_product: algorithms timed under capture");
}

/// The rows of y, without what lies between them.
std::vector<unsigned char> copied_result(const LibraryProductArgs& args, Stream stream) {
  const std::size_t width = static_cast<std::size_t>(args.columns) * element_bytes(args.out_type);
  const std::size_t pitch = static_cast<std::size_t>(args.y_stride) * element_bytes(args.out_type);
  std::vector<unsigned char> bytes(width * static_cast<std::size_t>(args.rows));
  check(cudaMemcpy2DAsync(bytes.data(), width, args.y, pitch, width, static_cast<std::size_t>(args.rows),
                          cudaMemcpyDeviceToHost, stream),
        "cudaMemcpy2DAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return bytes;
}

}  // namespace

struct LibraryProducts::State {
  cublasLtHandle_t handle = nullptr;
  DeviceBytes workspace{kWorkspaceBytes};
  Preference preference;
  std::string gpu;
  int cache_bytes = 0;
  std::map<LibraryShape, Chosen> choices;

  State() {
    int device = 0;
    cudaDeviceProp properties{};
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    gpu = properties.name;
    cache_bytes = properties.l2CacheSize;
    check(cublasLtCreate(&handle), "cublasLtCreate");
  }
  ~State() {
    if (handle != nullptr) static_cast<void>(cublasLtDestroy(handle));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  cublasStatus_t multiply(Problem& problem, const LibraryProductArgs& args,
                          const cublasLtMatmulAlgo_t& algorithm, Stream stream) {
    const float one = 1.0F, zero = 0.0F;
    return cublasLtMatmul(handle, &problem.operation, &one, args.weights, &problem.weights, args.x,
                          &problem.x, &zero, args.y, &problem.y, args.y, &problem.y, &algorithm,
                          workspace.data(), workspace.size(), stream);
  }

  /// The heuristic's best, at most `count`, best first; never none.
  std::vector<Chosen> candidates(Problem& problem, int count) {
    std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(count));
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle, &problem.operation, &problem.weights, &problem.x, &problem.y,
                                         &problem.y, preference.get(), count, results.data(), &found),
          "cublasLtMatmulAlgoGetHeuristic");
    std::vector<Chosen> all;
    for (int i = 0; i < found; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      if (result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspaceBytes) continue;
      all.push_back({result.algo, 0, result.workspaceSize});
    }
    if (all.empty()) throw LibraryError("cublasLtMatmulAlgoGetHeuristic: no algorithm for this product");
    return all;
  }

  /// Whether an algorithm runs and gives the same bits twice.
  bool repeats(Problem& problem, const LibraryProductArgs& args, const Chosen& candidate, Stream stream) {
    std::vector<unsigned char> results[2];
    for (auto& result : results) {
      if (multiply(problem, args, candidate.algorithm, stream) != CUBLAS_STATUS_SUCCESS) return false;
      result = copied_result(args, stream);
    }
    return results[0] == results[1];
  }

  /// Times of every candidate, taken in turns, each after the caches were overwritten: in a model other
  /// weights have gone through them since.
  void time_in_turns(Problem& problem, const LibraryProductArgs& args, std::vector<Chosen>& all,
                     Stream stream) {
    const DeviceBytes sweep(2 * static_cast<std::size_t>(std::max(cache_bytes, 1 << 20)));
    std::vector<std::vector<double>> times(all.size());
    Event begin, end;
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < all.size(); ++i) {
        check(cudaMemsetAsync(sweep.data(), round, sweep.size(), stream), "cudaMemsetAsync");
        begin.record(stream);
        check(multiply(problem, args, all[i].algorithm, stream), "cublasLtMatmul");
        end.record(stream);
        end.wait();
        if (round > 0) times[i].push_back(end.microseconds_since(begin));
      }
    for (std::size_t i = 0; i < all.size(); ++i) all[i].microseconds = tenth_percentile(times[i]);
  }
};

LibraryProducts::LibraryProducts() : state_(std::make_unique<State>()) {}

LibraryProducts::~LibraryProducts() = default;

bool LibraryProducts::supports(const LibraryProductArgs& args) {
  const auto aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % kAlignment == 0;
  };
  const auto whole = [](std::int64_t count, ElementType type) {
    return count * static_cast<std::int64_t>(element_bytes(type)) % kAlignment == 0;
  };
  if (args.rows < 1 || args.columns < 1 || args.depth < 1) return false;
  if (args.x_stride < args.depth || args.y_stride < args.columns) return false;
  if (args.in_type == ElementType::f32 && args.out_type != ElementType::f32) return false;
  return aligned(args.x) && aligned(args.weights) && aligned(args.y) && whole(args.depth, args.in_type) &&
         whole(args.x_stride, args.in_type) && whole(args.y_stride, args.out_type);
}

void LibraryProducts::run(const LibraryProductArgs& args, Stream stream) {
  if (args.rows == 0) return;
  require_support(args);
  Problem problem(args);
  const LibraryShape shape = shape_of(args);
  auto found = state_->choices.find(shape);
  if (found == state_->choices.end())
    found = state_->choices.emplace(shape, state_->candidates(problem, 1).front()).first;
  cublasStatus_t status = state_->multiply(problem, args, found->second.algorithm, stream);
  // Fewer rows of the bucket, or other strides, may be beyond an algorithm that was chosen for its largest.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE)
    status = state_->multiply(problem, args, state_->candidates(problem, 1).front().algorithm, stream);
  check(status, "cublasLtMatmul");
}

LibraryChoice LibraryProducts::choose(const LibraryProductArgs& args, Stream stream) {
  require_support(args);
  refuse_capture(stream);
  Problem problem(args);
  std::vector<Chosen> all = state_->candidates(problem, kCandidatesMax);
  std::erase_if(all, [&](const Chosen& one) { return !state_->repeats(problem, args, one, stream); });
  if (all.empty()) throw LibraryError("library_product: no algorithm repeats its own result");
  state_->time_in_turns(problem, args, all, stream);
  const auto best = std::min_element(all.begin(), all.end(), [](const Chosen& a, const Chosen& b) {
    return a.microseconds < b.microseconds;
  });
  const LibraryShape shape = shape_of(args);
  state_->choices[shape] = *best;
  return described(shape, *best);
}

LibraryTable LibraryProducts::table() const {
  LibraryTable table{state_->gpu, cublasLtGetVersion(), {}};
  for (const auto& [shape, chosen] : state_->choices) table.choices.push_back(described(shape, chosen));
  return table;
}

int LibraryProducts::import_table(const LibraryTable& table) {
  if (table.gpu != state_->gpu || table.library_version != cublasLtGetVersion()) return 0;
  int taken = 0;
  for (const LibraryChoice& choice : table.choices) {
    const LibraryShape& shape = choice.shape;
    LibraryProductArgs args;
    args.rows = shape.rows_bucket;
    args.columns = shape.columns;
    args.depth = shape.depth;
    args.in_type = shape.in_type;
    args.out_type = shape.out_type;
    args.x_stride = shape.depth;
    args.y_stride = (std::int64_t{shape.columns} + 7) / 8 * 8;
    if (!supports(args)) continue;
    Problem problem(args);
    Chosen chosen{{}, choice.microseconds, 0};
    std::memcpy(&chosen.algorithm, choice.algorithm.words.data(), sizeof chosen.algorithm);
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status =
        cublasLtMatmulAlgoCheck(state_->handle, &problem.operation, &problem.weights, &problem.x, &problem.y,
                                &problem.y, &chosen.algorithm, &result);
    if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kWorkspaceBytes) continue;
    chosen.workspace_bytes = result.workspaceSize;
    state_->choices[shape] = chosen;
    ++taken;
  }
  return taken;
}

}  // namespace foretoken::cuda

#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/types.hpp"
#include "kernels/element.hpp"

namespace foretoken::cuda {

/// A call of the CUDA runtime or of cuBLASLt that failed: which, and the library's name for why.
struct LibraryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Products that share one choice of algorithm. Rows are a bucket: choices are timed at, and asked for,
/// rounded up.
struct LibraryShape {
  int columns = 0;
  int depth = 0;
  int rows_bucket = 0;
  ElementType in_type = ElementType::bf16;
  ElementType out_type = ElementType::bf16;
  auto operator<=>(const LibraryShape&) const = default;
};

/// An algorithm: the library's own 64 bytes, which the same version of it takes back, and what they say, for
/// readers.
struct LibraryAlgorithm {
  std::array<std::uint64_t, 8> words{};
  std::int32_t id = 0;
  std::uint32_t tile = 0;
  std::uint32_t stages = 0;
  std::int32_t split_depth = 1;
};

/// One row of the table of choices.
struct LibraryChoice {
  LibraryShape shape;
  LibraryAlgorithm algorithm;
  /// As timed when it was chosen; 0 when the first heuristic was taken without timing.
  double microseconds = 0;
  std::uint64_t workspace_bytes = 0;
};

/// A table of choices and what it holds for: an algorithm's numbers mean nothing to another version of the
/// library.
struct LibraryTable {
  std::string gpu;
  std::uint64_t library_version = 0;
  std::vector<LibraryChoice> choices;
};

/// y[M,N] = x[M,K] W[N,K]^T.
struct LibraryProductArgs {
  int rows = 0;
  int columns = 0;
  int depth = 0;
  /// bf16 or f32, the same for x and weights; aligned to 16 bytes.
  ElementType in_type = ElementType::bf16;
  const void* x = nullptr;
  /// Elements from one row of x to the next.
  std::int64_t x_stride = 0;
  /// [columns, depth] without gaps.
  const void* weights = nullptr;
  void* y = nullptr;
  /// Elements from one row of y to the next.
  std::int64_t y_stride = 0;
  /// bf16 or f32; f32 for f32 input.
  ElementType out_type = ElementType::bf16;
};

/// The bucket that `rows` fall into, named by its largest: 16, 32, 48, and so on by 16, from 128 on by a
/// quarter of the power of two below.
constexpr int library_rows_bucket(int rows) {
  if (rows <= 16) return 16;
  const int step = std::max(16, static_cast<int>(std::bit_floor(static_cast<unsigned>(rows - 1))) / 4);
  return (rows + step - 1) / step * step;
}

/// Products by cuBLASLt on the device that is current when it is made, one at a time: they share the
/// workspace. bf16 in with f32 sums, or all in f32 (no TF32). Depths may be split only where the parts are
/// added in a step of their own.
class LibraryProducts {
 public:
  /// Opens the library and allocates its workspace of 32 MiB. Throws LibraryError.
  LibraryProducts();
  ~LibraryProducts();
  LibraryProducts(const LibraryProducts&) = delete;
  LibraryProducts& operator=(const LibraryProducts&) = delete;

  /// Whether the library takes a product of this shape and these types: strides in whole 16 bytes.
  static bool supports(const LibraryProductArgs& args);

  /// Queues the product on `stream`. A shape without a choice takes the first heuristic, which is remembered;
  /// nothing is timed, allocated or waited for, so that streams may be captured. A shape's first run loads
  /// its kernel, so let it be one outside a capture. Throws LibraryError, as all members do.
  void run(const LibraryProductArgs& args, Stream stream);

  /// Times the heuristic's eight best algorithms on these operands, y among them, with cold caches and in
  /// turns, drops those whose results differ between two runs, and remembers the quickest by its 10th
  /// percentile for the bucket of these rows. Waits for the device; the stream must not be under capture.
  LibraryChoice choose(const LibraryProductArgs& args, Stream stream);

  /// Every choice so far.
  LibraryTable table() const;

  /// Takes over choices of the same GPU and library version, and returns how many: none of another's, and not
  /// those that the library refuses.
  int import_table(const LibraryTable& table);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foretoken::cuda

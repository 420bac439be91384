#include "kernels/cuda/simt/launch.hpp"

namespace foretoken::cuda::simt {

/// Stands in where no streams are linked.
__attribute__((weak)) void submit(Stream*, std::function<void()>) {
  throw LaunchError("no emulated streams in this program");
}

}  // namespace foretoken::cuda::simt

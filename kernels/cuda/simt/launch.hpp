#pragma once
#include <functional>
#include <tuple>
#include <utility>

#include "kernels/cuda/simt/emulator.hpp"
#include "kernels/cuda/types.hpp"

namespace foretoken::cuda::simt {

/// Queues `work` behind everything submitted to `stream` before; `stream` must not be null.
void submit(Stream* stream, std::function<void()> work);

/// Launches `kernel` with copies of `arguments`, which are taken now, as a device would take them: at once
/// when `stream` is null, else behind the stream's other work.
template <class Kernel, class... Arguments>
void launch(const Launch& shape, Stream* stream, const Kernel& kernel, const Arguments&... arguments) {
  auto call = [shape, kernel, packed = std::tuple<std::decay_t<const Arguments&>...>(arguments...)] {
    const auto body = [&] { std::apply(kernel, packed); };
    using Closure = decltype(body);
    run(
        shape, [](const void* context) { (*static_cast<Closure*>(context))(); }, &body);
  };
  if (stream == nullptr) return call();
  submit(stream, std::move(call));
}

}  // namespace foretoken::cuda::simt

#define FT_LAUNCH(kernel, grid, block, dynamic_bytes, stream, ...) \
  ::foretoken::cuda::simt::launch(                                 \
      {#kernel, dim3(grid), dim3(block), dynamic_bytes}, stream,   \
      [](const auto&... ft_arguments) { kernel(ft_arguments...); }, __VA_ARGS__)
#define FT_LAUNCH_DEPENDENT(...) FT_LAUNCH(__VA_ARGS__)
#define FT_DYN_SMEM(name) unsigned char* const name = ::foretoken::cuda::simt::dynamic_shared()
#define FT_SHARED(type, name, count)                 \
  static char name##_key;                            \
  type(&name)[count] = *static_cast<type(*)[count]>( \
      ::foretoken::cuda::simt::static_shared(&name##_key, sizeof(type) * (count), alignof(type)))

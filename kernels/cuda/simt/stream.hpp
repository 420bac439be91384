#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "kernels/cuda/simt/launch.hpp"

/// Streams of the emulated device. Queued work runs at the latest moment at which a device could still be
/// about to do it: only when the host waits for it, and no further than the host waits. So memory that is
/// read, written or freed too early shows as wrong numbers, or to ASan, in every run instead of in one of a
/// thousand.
///
/// Blind spots: work that a device would have begun *earlier* than this and that is overwritten meanwhile (a
/// source of a copy changed while it runs shows, a result used although a later overwrite was queued without
/// order does not); real parallelism of streams.
namespace foretoken::cuda::simt {

/// A moment in a stream: everything submitted to it before.
struct Event {
  Stream* stream = nullptr;
  std::uint64_t position = 0;
};

/// Work recorded to be run again and again.
using Recording = std::vector<std::function<void()>>;

/// Work in the order of its submission.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Queues `work`, or records it during a capture.
  void submit(std::function<void()> work);
  /// Everything submitted so far.
  Event record();
  /// Later work waits for `event`, of any stream.
  void wait(const Event& event);
  /// Runs everything up to `event`, which is of this stream. What the work throws comes out here, and the
  /// rest stays queued.
  void run_to(std::uint64_t position);
  /// Runs everything.
  void synchronize();
  /// Whether everything has run.
  bool is_idle() const { return queue_.empty(); }
  /// From now on work is recorded, not queued.
  void begin_capture();
  /// Ends the capture and returns what was recorded. LaunchError where no capture was begun.
  Recording end_capture();

 private:
  std::deque<std::function<void()>> queue_;
  std::uint64_t submitted_ = 0;
  std::uint64_t done_ = 0;
  bool is_capturing_ = false;
  Recording recording_;
};

/// Returns when the event's work has run.
void synchronize(const Event& event);

}  // namespace foretoken::cuda::simt

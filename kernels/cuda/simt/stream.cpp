#include "kernels/cuda/simt/stream.hpp"

#include <utility>

namespace foretoken::cuda::simt {

void Stream::submit(std::function<void()> work) {
  if (is_capturing_) {
    recording_.push_back(std::move(work));
    return;
  }
  queue_.push_back(std::move(work));
  ++submitted_;
}

Event Stream::record() {
  if (is_capturing_) throw LaunchError("record: not during a capture");
  return {this, submitted_};
}

void Stream::wait(const Event& event) {
  if (is_capturing_) throw LaunchError("wait: not during a capture");
  if (event.stream == nullptr || event.stream == this) return;
  submit([event] { event.stream->run_to(event.position); });
}

void Stream::run_to(std::uint64_t position) {
  while (done_ < position && !queue_.empty()) {
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    ++done_;
    work();
  }
}

void Stream::synchronize() {
  if (is_capturing_) throw LaunchError("synchronize: not during a capture");
  run_to(submitted_);
}

void Stream::begin_capture() {
  if (is_capturing_) throw LaunchError("begin_capture: the stream is under capture");
  is_capturing_ = true;
}

Recording Stream::end_capture() {
  if (!is_capturing_) throw LaunchError("end_capture: no capture was begun");
  is_capturing_ = false;
  return std::exchange(recording_, {});
}

void submit(Stream* stream, std::function<void()> work) { stream->submit(std::move(work)); }

void synchronize(const Event& event) {
  if (event.stream != nullptr) event.stream->run_to(event.position);
}

}  // namespace foretoken::cuda::simt

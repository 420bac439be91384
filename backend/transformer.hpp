#pragma once
#include <utility>

#include "backend/device.hpp"
#include "backend/step_rows.hpp"

namespace foretoken {

/// A Llama-family decoder: the order in which the stages of a step run, whatever runs them. A queue is where
/// the device's work goes, and its `barrier` stands between a stage and one that reads what it wrote: members
/// of a CPU team meet there, a CUDA stream keeps the order by itself.
template <class Device>
class Transformer {
 public:
  /// The arguments are those of the device's stages.
  template <class... Arguments>
  explicit Transformer(Arguments&&... arguments) : stages_(std::forward<Arguments>(arguments)...) {}

  /// The device's side of it: room, the next step's rows, results.
  Stages<Device>& stages() { return stages_; }
  const Stages<Device>& stages() const { return stages_; }

  /// The forward pass of the prepared step.
  template <class Queue>
  void forward(Queue& queue) {
    if (stages_.rows() == 0) return;
    stages_.embed(queue);
    queue.barrier();
    for (int layer = 0; layer < stages_.layers(); ++layer) {
      attention_block(queue, layer);
      feed_forward_block(queue, layer);
    }
    if (stages_.sampled_rows() == 0) return;
    stages_.head_norm(queue);
    queue.barrier();
    stages_.head_product(queue);
    queue.barrier();
    stages_.sample(queue);
  }

  /// The products of the prepared step alone, on whatever the buffers hold: what a step is measured against.
  template <class Queue>
  void forward_products(Queue& queue) {
    for (int layer = 0; layer < stages_.layers(); ++layer) {
      stages_.qkv_product(queue, layer);
      queue.barrier();
      stages_.output_product(queue, layer);
      queue.barrier();
      stages_.gate_up_product(queue, layer);
      queue.barrier();
      stages_.down_product(queue, layer);
      queue.barrier();
    }
    if (stages_.sampled_rows() > 0) stages_.head_product(queue);
  }

 private:
  template <class Queue>
  void attention_block(Queue& queue, int layer) {
    stages_.attention_norm(queue, layer);
    queue.barrier();
    stages_.qkv_product(queue, layer);
    queue.barrier();
    stages_.rope(queue, layer);
    queue.barrier();
    stages_.attention(queue, layer);
    queue.barrier();
    stages_.output_product(queue, layer);
    queue.barrier();
  }

  template <class Queue>
  void feed_forward_block(Queue& queue, int layer) {
    stages_.ffn_norm(queue, layer);
    queue.barrier();
    stages_.gate_up_product(queue, layer);
    queue.barrier();
    stages_.down_product(queue, layer);
    queue.barrier();
  }

  Stages<Device> stages_;
};

}  // namespace foretoken

#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "backend/step_rows.hpp"
#include "models/device.hpp"
#include "models/profile.hpp"
#include "models/shape.hpp"

namespace foretoken {

/// What a decoder must hold.
struct DecoderOptions {
  std::int32_t block_tokens = 16;
  /// Blocks of the device pool and of the swap pool, as in Capacity.
  std::int64_t kv_blocks = 0;
  std::int64_t host_blocks = 0;
  /// Longest sequence, prompt and answer together.
  std::int32_t tokens_max = 0;
  /// Rows and sampled rows to have room for from the start; more are taken as they come.
  std::int32_t rows = 0;
  std::int32_t sequences = 0;
  /// 1: `launch` sets the device to work beside the caller; 0: a device that needs the caller's thread waits
  /// for `finish`.
  std::int32_t depth = 0;
};

/// A model with its key/value pools on one device, taking steps one after the other. The device pool has one
/// block more than asked for, number `kv_blocks`: the dummy, which is all zeros and stands in for the pages
/// of dead rows.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Begins a step. `work` must stay unchanged until `finish` returns. DeviceError when the device refuses.
  virtual void launch(const StepWork& work) = 0;
  /// Returns when the launched step is done. DeviceError when the device is lost.
  virtual void finish() = 0;
  /// Greedy tokens of the step that ended last, one per sampled row in their order; valid until the next
  /// `launch`.
  virtual std::span<const std::int32_t> sampled() const = 0;
  /// Logits of sampled row `i` of the step that ended last; valid until the next call.
  virtual std::span<const float> logits(int i) = 0;
};

/// A model's weights on a device, made once and used by many runs.
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  /// The model that it runs.
  virtual const ModelShape& shape() const = 0;
  /// How its matrices are stored.
  virtual Precision weight_precision() const = 0;
  /// How its keys and values are stored.
  virtual Precision kv_precision() const = 0;
  /// What runs it, as reports say: "this machine's CPU".
  virtual std::string place() const = 0;
  /// What a profile notes of the device.
  virtual ProfileOrigin origin() const = 0;
  /// Bandwidth and arithmetic peaks, measured for about `seconds`: what no step may beat.
  virtual DeviceSheet measure_limits(double seconds) = 0;
  /// Pools and room for steps. DeviceError, saying how much was asked and how much is free, when memory is
  /// short.
  virtual std::unique_ptr<Decoder> decoder(const DecoderOptions& options) = 0;
};

}  // namespace foretoken

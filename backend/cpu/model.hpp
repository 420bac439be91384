#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/cpu/runtime.hpp"
#include "backend/cpu/weights.hpp"
#include "backend/decoder.hpp"
#include "kernels/cpu/kv_layout.hpp"

namespace foretoken {

/// A model on this machine's processors: a thread team and seeded weights.
class CpuModel final : public DeviceModel {
 public:
  /// DeviceError when memory is short; `threads` 0 takes all usable processors. Once `stop` is set the
  /// weights stay as they are, and nothing may be run with them.
  CpuModel(const ModelShape& shape, ElementType type, int threads, std::uint64_t seed,
           const std::atomic<bool>* stop = nullptr);

  const ModelShape& shape() const override { return weights_.shape; }
  Precision weight_precision() const override;
  Precision kv_precision() const override { return weight_precision(); }
  std::string place() const override { return "this machine's CPU"; }
  ProfileOrigin origin() const override;
  DeviceSheet measure_limits(double seconds) override;
  std::unique_ptr<Decoder> decoder(const DecoderOptions& options) override;

 private:
  Runtime<Cpu> runtime_;
  Weights<Cpu> weights_;
};

/// The KV pool's layout for a model.
cpu::KvLayout kv_layout(const ModelShape& shape, ElementType type, std::int32_t block_tokens);

}  // namespace foretoken

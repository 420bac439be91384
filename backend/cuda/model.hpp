#pragma once
#include <memory>

#include "backend/cpu/runtime.hpp"
#include "backend/cuda/runtime.hpp"
#include "backend/cuda/weights.hpp"
#include "backend/decoder.hpp"
#include "backend/plugin.hpp"

namespace foretoken {

/// A model on a CUDA device or its emulation.
class CudaModel final : public DeviceModel {
 public:
  /// Seeded random weights. InputError where there are no kernels for the model or the precisions,
  /// DeviceError where there is no device or its memory is short.
  CudaModel(const ModelShape& shape, const PluginModelOptions& options);

  const ModelShape& shape() const override { return weights_.shape; }
  Precision weight_precision() const override { return options_.weight_precision; }
  Precision kv_precision() const override { return options_.kv_precision; }
  std::string place() const override;
  ProfileOrigin origin() const override;
  DeviceSheet measure_limits(double seconds) override;
  std::unique_ptr<Decoder> decoder(const DecoderOptions& options) override;

 private:
  PluginModelOptions options_;
  Runtime<Cpu> host_;
  Runtime<Cuda> runtime_;
  Weights<Cuda> weights_;
};

}  // namespace foretoken

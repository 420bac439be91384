#pragma once

namespace foretoken {

/// Device tag: the processors that run this program.
struct Cpu;
/// Device tag: an NVIDIA GPU, or its emulation; compiled into plugins (`open_plugin`).
struct Cuda;

/// What a transformer needs of a device: `allocate`, `copy`, and an order of work. Each device's header
/// specialises it.
template <class Device>
class Runtime;

/// The kernels of one device, stage by stage; what `Transformer` puts in order. A specialisation has the
/// members of Stages<Cpu>.
template <class Device>
class Stages;

/// How a device stores a weight matrix, as member `Matrix`.
template <class Device>
struct DeviceTypes;

}  // namespace foretoken

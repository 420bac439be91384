#include "kernels/cpu/generic/table.hpp"
#include "kernels/cpu/simd/portable_ops.hpp"
#include "kernels/cpu/tables.hpp"

namespace foretoken::cpu {

const Kernels& portable_kernels() {
  static constexpr Kernels kTable = table_of<PortableOps>(Isa::portable);
  return kTable;
}

}  // namespace foretoken::cpu
